"""A long stream of noisy records, learned in batches of 100 with StreamingLOO attached.

At twenty points: resident memory of the process, CPU microseconds per record, and the latest estimate beside the error
on 5000 fresh examples.
"""

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
from shared.tables import say, table

from forgetting.streams import BATCH, FRESH, concept, records
from streamsvm import LASVM
from streamsvm.validation import StreamingLOO


def soak(options: argparse.Namespace) -> None:
    """Learn a long stream, and print what it takes as it goes on."""
    import psutil

    names = ("budget", "on_budget", "window")
    bounds = {name: getattr(options, name) for name in names if getattr(options, name) is not None}
    model = LASVM(C=10.0, gamma=0.2, **bounds)
    loo = StreamingLOO(model, every=5000, share=options.share)
    process, every, rows, spent = psutil.Process(), max(BATCH, options.records // 20), [], []
    begin = time.process_time()
    for batch, (X, y) in enumerate(records(options.records, options.noise), 1):
        before = loo.latest
        loo.learn_many(X, y)
        if loo.latest is not None and loo.latest is not before:
            spent.append(loo.latest.seconds)
        if batch * BATCH % every == 0:
            now = time.process_time()
            figures = process.memory_info().rss / 2**20, 1e6 * (now - begin) / every, 1e3 * np.mean(spent or np.nan)
            spent.clear()
            X, y = concept(FRESH, 0.0, np.random.default_rng([1, batch]), options.noise)
            error = loo.latest.error.value if loo.latest else np.nan
            fresh = np.mean((model.decision_function_many(X) > 0) != y)
            rows.append((batch * BATCH, *figures, model.n_members, 100 * error, 100 * fresh))
            print("{}: {:.1f} MB, {:.1f} us, {:.1f} ms, {} members, {:.2f} %, {:.2f} %".format(*rows[-1]), flush=True)
            begin = time.process_time()
    show_soak(np.array(rows), bounds, options)


def show_soak(rows: np.ndarray, bounds: dict[str, Any], options: argparse.Namespace) -> None:
    """Print the table, compare its second quarter with its last, and draw it."""
    print(f"\n### {options.records} records, noise {options.noise:g}, {bounds or 'no bounds'}\n")
    forms = ("{:.0f}", "{:.1f}", "{:.1f}", "{:.1f}", "{:.0f}", "{:.2f}", "{:.2f}")
    titles = "records|resident MB|CPU us per record|ms per estimate|members|LOO error %|fresh error %"
    print(table(titles, [[form.format(value) for form, value in zip(forms, row, strict=True)] for row in rows]) + "\n")
    early, late = rows[len(rows) // 4 : len(rows) // 2].mean(axis=0), rows[-(len(rows) // 4) :].mean(axis=0)
    say("memory stays flat", f"{early[1]:.1f} MB, later {late[1]:.1f}", late[1] < 1.05 * early[1])
    say("time per record stays flat", f"{early[2]:.1f} us, later {late[2]:.1f}", late[2] < 1.25 * early[2])
    if options.picture:
        from matplotlib.figure import Figure

        figure = Figure(figsize=(9, 6), layout="constrained")
        for axes, column, label in zip(
            figure.subplots(3, 1, sharex=True), (1, 2, 4), ("resident MB", "CPU us per record", "members"), strict=True
        ):
            axes.plot(rows[:, 0], rows[:, column], "o-")
            axes.set_ylabel(label)
            axes.set_ylim(0, 1.1 * rows[:, column].max())
            axes.grid(alpha=0.3)
        figure.axes[-1].set_xlabel("records")
        options.picture.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(options.picture, dpi=120)


def add_command(kinds: Any) -> None:
    """Add this file's sub-command to the command line."""
    one = kinds.add_parser("soak", help="a long stream")
    one.add_argument("--records", type=int, default=1_000_000)
    one.add_argument("--noise", type=float, default=0.4, help="blur of the labels; 0: none")
    one.add_argument("--budget", type=int)
    one.add_argument("--on-budget", choices=["remove", "project", "merge"])
    one.add_argument("--window", type=int)
    one.add_argument("--share", type=float, default=0.1, help="of StreamingLOO")
    one.add_argument("--picture", type=Path, help="file for the picture; default: none is drawn")
    one.set_defaults(run=soak)
