"""All ways by which members leave models of ordinary tables.

Models of LASVM, finished, of six sets with 600 to 1400 support vectors; CPU milliseconds of one thread.  Columns:

    first            the first model.forget(id) after learning, which looks at the whole reservoir
    forget           of 50 more, one after the other: the median, and the worst
    no reservoir     the same for a model without a reservoir
    relabel          model.relabel(id) of 20 support vectors to the other class
    budget           a budget is full: per member that leaves
    window           members are too old: per member that leaves
    leave out        leaving one support vector out, as StreamingLOO does: the mean, with the factor that all share
    anew             one pass and `finish` over all examples but the forgotten ones, reservoir included
    x                how many times longer that takes than to forget: the medians
    members          how far decision values are, after all removals from the model without a reservoir, from those of
                     LIBSVM on its members
    differ           predictions of test examples that differ from those of the model trained anew, in percent

`removal` has other figures: one kind of data, by the number of support vectors.
"""

import argparse
import copy
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from datasets import ORDINARY_TASKS, Task, load
from shared.clock import timed
from shared.tables import say, table
from sklearn.svm import SVC

from streamsvm import LASVM
from streamsvm.core import storage
from streamsvm.online.removal import bounded
from streamsvm.online.removal.leave_one_out import UNKNOWN
from streamsvm.online.removal.window import Window, let_old_leave

SETS = ("banana", "abalone", "satimage", "waveform", "spambase", "krkopt")
TOL = 1e-3
WARM, REMOVALS, CORRECTIONS, LEFT_OUT = 5, 50, 20, 100
MOST_MS, TIMES = 0.7, 100  # aims: milliseconds of a removal, and how many times longer it takes to train anew


def trained(task: Task, X: np.ndarray, y: np.ndarray, **options: Any) -> LASVM:
    """A finished model whose ids are the places of its examples."""
    model = LASVM(C=task.C, gamma=task.gamma, **options)
    model.learn_many(X, y)
    model.finish(TOL)
    return model


def milliseconds(step: Callable[[Any], Any], over: np.ndarray) -> np.ndarray:
    """What the step takes for each of these."""
    found = []
    for one in over.tolist():
        begin = time.process_time()
        step(one)
        found.append(1e3 * (time.process_time() - begin))
    return np.array(found)


def of_bounds(model: LASVM) -> tuple[float, float]:
    """Per member that leaves: of a budget that is full, and of a window."""
    s, n = model._state.expansion, model.n_members
    engine = model._state.kernel, model._state.problem, TOL
    own = [s._replace(rows=s.rows.copy()) for _ in range(2)]  # Copies of an expansion share the cached rows.
    options = n, bounded.REMOVE, len(model.feature_names)
    reduced, seconds, _ = timed(lambda: bounded.reduce_members(own[0], *engine, *options))
    of_budget = seconds / (n - storage.n_members(reduced))
    oldest = np.sort(s.born[storage.live_slots(s)])[0]
    aged, now, clock = storage.with_own_coefficients(own[1]), int(oldest) + model.n_seen, Window(model.n_seen).clock
    _, seconds, _ = timed(lambda: let_old_leave(model._state.rule, aged, model._state.kernel, clock, now))
    return 1e3 * of_budget, 1e3 * seconds / (n - storage.n_members(aged))


def of_leave_out(model: LASVM, X: np.ndarray, y: np.ndarray) -> float:
    """Per member that is left out."""
    ids = np.sort(model._state.expansion.ids[storage.live_slots(model._state.expansion)])
    without, slots = model.leave_out([dict(enumerate(row)) for row in X[ids].tolist()], y[ids], None, ids)
    unknown = slots[without.bounds()[slots] == UNKNOWN][:LEFT_OUT]

    def leave_out() -> None:
        without.prepare(len(unknown))
        for slot in unknown:
            without.without(np.array([slot]))

    return 1e3 * timed(leave_out)[1] / max(1, len(unknown))


def figures_of(task: Task, folder: Path | None) -> dict[str, Any]:
    """One row of the table."""
    data = load(task, folder)
    X, y, X_test = np.asarray(data.X, np.float64), data.y > 0, np.asarray(data.X_test, np.float64)
    bare, model = trained(task, X, y, reservoir=0), trained(task, X, y)
    found = {"set": task.name, "support": model.n_support}
    found["free"] = int(np.count_nonzero(np.abs(model.dual_coef) < task.C))
    found["budget"], found["window"] = of_bounds(bare)
    found["leave out"] = of_leave_out(copy.copy(bare), X, y)
    corrected = np.random.default_rng(1).choice(model.support_ids, CORRECTIONS, replace=False)
    relabelled = copy.copy(model)
    found["relabel"] = milliseconds(lambda i: relabelled.relabel(i, not y[i]), corrected)
    chosen = np.random.default_rng(0).choice(model.support_ids, 1 + REMOVALS, replace=False)
    found["first"] = float(milliseconds(model.forget, chosen[:1])[0])
    found["forget"] = milliseconds(model.forget, chosen[1:])
    of_bare = np.random.default_rng(0).choice(bare.support_ids, WARM + REMOVALS, replace=False)
    found["no reservoir"] = milliseconds(bare.forget, of_bare)[WARM:]
    rest = np.setdiff1d(np.arange(len(y)), chosen)
    anew, seconds, _ = timed(lambda: trained(task, X[rest], y[rest]))
    found["anew"] = 1e3 * seconds
    found["differ"] = 100.0 * float(np.mean(anew.predict_many(X_test) != model.predict_many(X_test)))
    ids = bare._state.expansion.ids[storage.live_slots(bare._state.expansion)]
    svc = SVC(C=task.C, gamma=task.gamma, tol=TOL).fit(X[ids], y[ids])
    found["members"] = float(np.abs(svc.decision_function(X_test) - bare.decision_function_many(X_test)).max())
    return found


def times(row: dict[str, Any]) -> float:
    """How many times longer than a removal it takes to train anew."""
    return float(row["anew"] / np.median(row["forget"]))


def tables(options: argparse.Namespace) -> None:
    """Print the table, and whether the aims are met."""
    rows = [figures_of(ORDINARY_TASKS[name], options.data) for name in options.sets]
    text = [
        [
            row["set"],
            f"{row['support']}, {row['free']}",
            f"{row['first']:.1f}",
            *(f"{np.median(row[kind]):.2f}, {row[kind].max():.1f}" for kind in ("forget", "no reservoir", "relabel")),
            *(f"{row[kind]:.2f}" for kind in ("budget", "window", "leave out")),
            f"{row['anew']:.0f}",
            f"{times(row):.0f}",
            f"{row['members']:.0e}",
            f"{row['differ']:.2f}",
        ]
        for row in rows
    ]
    titles = "set|support, free|first|forget|no reservoir|relabel|budget|window|leave out|anew|x|members|differ %"
    print("\n" + table(titles, text) + "\n")
    for row in rows:
        for kind in ("forget", "no reservoir"):
            median = float(np.median(row[kind]))
            say(f"{row['set']}, {kind}: at most {MOST_MS} ms in the median", f"{median:.2f}", median <= MOST_MS)
        say(f"{row['set']}, {TIMES} times as fast as training anew", f"{times(row):.0f}", times(row) >= TIMES)


def add_command(kinds: Any) -> None:
    """Add this file's sub-command to the command line."""
    one = kinds.add_parser("tables", help="all ways by which members leave, on ordinary tables")
    one.add_argument("--data", type=Path, default=argparse.SUPPRESS, help="folder of npz files; default: OpenML")
    one.add_argument("--sets", nargs="+", default=SETS, choices=list(ORDINARY_TASKS))
    one.set_defaults(run=tables)
