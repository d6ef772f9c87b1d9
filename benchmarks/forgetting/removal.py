"""What forgetting one example costs, by the number of support vectors, beside retraining.

Models of LASVM, finished, over noisy examples: a small C with mostly bounded support vectors, and a large one with
mostly free ones.  Columns:

    forget       CPU microseconds of model.forget(id) for one support vector, the median of 30
    paths        how many of these 30 left along a path
    training     milliseconds of learn_many and finish; how many times as long as one `forget` they take
    leave out    CPU microseconds per removal of StreamingLOO, the factor that all share included; how many there were
                 by paths and by steps
    SVC, members LIBSVM, through scikit-learn's SVC, on the other members of the expansion; milliseconds
    SVC, all     the same on all other examples
"""

import argparse
import contextlib
import copy
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from shared.clock import timed
from shared.tables import table
from sklearn.datasets import load_digits
from sklearn.svm import SVC

from streamsvm import LASVM, warmup
from streamsvm.batch.path import follow as path
from streamsvm.estimators.learner import state
from streamsvm.online.removal.forget import FOLLOWED
from streamsvm.online.removal.leave_one_out import UNKNOWN, LeaveOut

SIZES = (200, 400, 800, 1600, 3200, 6400)
KINDS = {"bounded": 1.0, "free": 100.0}  # C
GAMMA, TOL = 0.1, 1e-3
REMOVALS, REMOVED = 30, 300
TICKS = (200, 500, 1000, 2000)  # of the picture


@contextlib.contextmanager
def noted(place: Any, name: str) -> Iterator[list[Any]]:
    """What a function of this place returns meanwhile."""
    function, results = getattr(place, name), []

    def watched(*arguments: Any) -> Any:
        results.append(function(*arguments))
        return results[-1]

    setattr(place, name, watched)
    try:
        yield results
    finally:
        setattr(place, name, function)


def trained(X: np.ndarray, y: np.ndarray, **parameters: float) -> tuple[LASVM, float]:
    """A finished model, and the milliseconds it took."""

    def train() -> LASVM:
        model = LASVM(**parameters)
        model.learn_many(X, y)
        model.finish(TOL)
        return model

    found = [timed(train) for _ in range(3)]
    return found[0][0], 1e3 * min(seconds for _, seconds, *_ in found)


def noisy(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Two classes in ten dimensions that a curve parts, one label in ten wrong."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 10))
    y = X[:, 0] + 0.5 * X[:, 1] ** 2 - X[:, 2] * X[:, 3] > 0.5
    return X, y ^ (rng.random(n) < 0.1)


def of_forget(model: LASVM, chosen: np.ndarray) -> dict:
    """What forgetting one after the other of these takes."""
    seconds, one = [], copy.copy(model)
    one.forget(model.support_ids[-1])  # a copy has no kernel rows yet
    with noted(state, "forget") as ways:
        for number in chosen.tolist():
            begin = time.process_time()
            one.forget(number)
            seconds.append(time.process_time() - begin)
    return {"forget": 1e6 * float(np.median(seconds)), "paths": sum(how == FOLLOWED for _, how in ways)}


def beside(model: LASVM, X: np.ndarray, y: np.ndarray) -> tuple[LeaveOut, np.ndarray]:
    """What StreamingLOO leaves examples out of, and their slots in it."""
    return model.leave_out([dict(enumerate(row)) for row in X.tolist()], y, None, np.arange(len(y)))


def of_leave_out(model: LASVM, X: np.ndarray, y: np.ndarray) -> dict:
    """What each removal by StreamingLOO takes, of the examples that bounds do not decide."""
    without, slots = beside(model, X, y)
    unknown = slots[without.bounds()[slots] == UNKNOWN][:REMOVED]

    def remove() -> None:
        without.prepare(len(unknown))
        for slot in unknown:
            without.without(np.array([slot]))

    with noted(path, "follow") as ways:
        seconds = timed(remove)[1]
    by_paths = sum(outcome == path.COMPLETE for outcome, _ in ways)
    return {"leave out": 1e6 * seconds / max(1, len(unknown)), "left": len(unknown), "left by paths": by_paths}


def retrained(X: np.ndarray, y: np.ndarray, C: float) -> float:
    """Milliseconds of a training by LIBSVM without the first example; the median of three, or one that takes long."""
    seconds: list[float] = []
    while len(seconds) < 3 and sum(seconds) < 5.0:
        seconds.append(timed(lambda: SVC(C=C, gamma=GAMMA).fit(X[1:], y[1:]))[1])
    return 1e3 * float(np.median(seconds))


def removal_of(C: float, n: int) -> dict:
    """One row of the table."""
    X, y = noisy(n)
    model, training = trained(X, y, C=C, gamma=GAMMA)
    members = model.support_ids
    alpha = np.abs(model._state.expansion.alpha[model._state.expansion.alpha != 0.0])
    chosen = np.random.default_rng(0).choice(members[:-1], REMOVALS, replace=False)
    found = {"n": n, "support": model.n_support, "free": int(np.count_nonzero(alpha < C)), "training": training}
    found |= of_forget(model, chosen) | of_leave_out(model, X, y)
    return found | {"members": retrained(X[members], y[members], C), "all": retrained(X, y, C)}


def removal(options: argparse.Namespace) -> None:
    """Print the table, and draw it."""
    found: dict[str, list[dict]] = {}
    for kind, C in KINDS.items():
        found[kind] = [removal_of(C, n) for n in options.sizes]
        print(f"\n### Mostly {kind}: C = {C:g}\n")
        rows = [
            [
                str(row["support"]),
                str(row["free"]),
                f"{row['forget']:.0f}",
                str(row["paths"]),
                f"{row['training']:.3g}",
                f"{1e3 * row['training'] / row['forget']:.0f}",
                f"{row['leave out']:.0f}",
                f"{row['left by paths']} + {row['left'] - row['left by paths']}",
                f"{row['members']:.3g}",
                f"{row['all']:.3g}",
                f"{1e3 * row['members'] / row['forget']:.0f}",
                f"{1e3 * row['members'] / row['leave out']:.0f}",
            ]
            for row in found[kind]
        ]
        titles = "support vectors|free|forget us|paths|training ms|x|leave out us|paths + steps"
        print(table(f"{titles}|SVC, members ms|SVC, all ms|x forget|x leave out", rows), flush=True)
    digits()
    if options.picture:
        draw(found, options.picture)


def digits() -> None:
    """Print the same of scikit-learn's digits, even against odd."""
    X, y = load_digits(return_X_y=True)
    model, training = trained(X / 16.0, y % 2 == 0, C=10.0)
    chosen = np.random.default_rng(0).choice(model.support_ids[:-1], 3 * REMOVALS, replace=False)
    us = of_forget(model, chosen)["forget"]
    print(f"\nDigits, even against odd, C = 10, {model.n_support} support vectors: training takes {training:.3g} ms,")
    print(f"`forget` {us:.0f} us: {1e3 * training / us:.0f} times as long.")


def draw(found: dict[str, list[dict]], picture: Path) -> None:
    """Cost against the number of support vectors."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 4), layout="constrained")
    for axes, (kind, rows) in zip(figure.subplots(1, 2, sharey=True), found.items(), strict=True):
        support = [row["support"] for row in rows]
        axes.loglog(support, [1e3 * row["all"] for row in rows], "o-", label="SVC on all examples")
        axes.loglog(support, [1e3 * row["members"] for row in rows], "o-", label="SVC on the members")
        axes.loglog(support, [row["forget"] for row in rows], "s-", label="forget")
        axes.loglog(support, [row["leave out"] for row in rows], "s-", label="StreamingLOO")
        axes.set(title=f"mostly {kind}, C = {KINDS[kind]:g}", xlabel="support vectors")
        axes.set_xticks(TICKS, map(str, TICKS))
        axes.xaxis.set_minor_formatter("")
        axes.grid(alpha=0.3)
    figure.axes[0].set_ylabel("microseconds per removal")
    figure.axes[0].legend()
    figure.savefig(picture, dpi=120)


def warm_up() -> None:
    """Load the compiled code."""
    warmup(LASVM)
    X, y = noisy(120)
    for C in KINDS.values():
        model = LASVM(C=C, gamma=GAMMA)
        model.learn_many(X, y)
        model.finish(TOL)
        of_leave_out(model, X, y)
        of_forget(model, model.support_ids[:20])


def add_command(kinds: Any) -> None:
    """Add this file's sub-command to the command line."""
    one = kinds.add_parser("removal", help="cost per removal against the number of support vectors")
    one.add_argument("--sizes", nargs="+", type=int, default=SIZES, help="examples; about half become support vectors")
    one.add_argument("--picture", type=Path, help="file for the picture; default: none is drawn")
    one.set_defaults(run=removal)
