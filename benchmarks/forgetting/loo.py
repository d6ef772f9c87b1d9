"""StreamingLOO beside brute force.

A LASVM learns all examples and finishes, again and again, until those that are no members do not violate either; then
StreamingLOO is asked for all of them, and SVC is trained n times on n - 1.  Both stop at a violation of 1e-3.
"decided" are the examples that StreamingLOO did not have to leave out, "removed" the others.  "differ": predictions
that differ from brute force, and the largest |f| of one.  Seconds are CPU seconds, of StreamingLOO the fastest of five.
"""

import argparse
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from datasets import VALIDATION_TASKS, Task, load
from seeding.methods import Setting, setting_of
from shared.clock import timed
from shared.tables import say, table

from forgetting.removal import TOL, beside
from streamsvm import LASVM
from streamsvm.online.removal.leave_one_out import RIGHT, UNCHANGED, UNKNOWN
from streamsvm.validation import StreamingLOO

TASKS = {name: VALIDATION_TASKS[name] for name in ("heart", "ionosphere", "pima", "banana-1000")} | {
    "german": Task("german", 1.0, 0.05, "1", "standard", 1000, "credit-g", "bad")  # as in planning.py
}
TURNS, EPOCHS = 5, 100
AIM = 30  # times as fast as retraining


class BruteForce(NamedTuple):
    """Decision values of n trainings on n - 1, and the CPU seconds that they took."""

    f: np.ndarray
    seconds: float


def remembered(model: LASVM, X: np.ndarray, y: np.ndarray) -> StreamingLOO:
    """StreamingLOO as if it had seen the model learn these."""
    loo = StreamingLOO(model, memory=len(y), share=0)
    loo.learned([dict(enumerate(row)) for row in X.tolist()], y, np.ones(len(y)), range(len(y)))
    return loo


def heeding_all(setting: Setting) -> tuple[LASVM, int]:
    """A LASVM for which no example violates, member or not, and after how many epochs."""
    model, y = LASVM(C=setting.task.C, gamma=setting.task.gamma, admission="violation"), setting.y > 0
    for epoch in range(1, EPOCHS + 1):
        model.learn_many(setting.X, y, ids=np.arange(len(y)))
        model.finish(TOL)
        rest = np.setdiff1d(np.arange(len(y)), model.support_ids)
        margins = (setting.y * model.decision_function_many(setting.X))[rest]
        if not len(rest) or margins.min() > 1.0 - TOL:
            return model, epoch
    raise RuntimeError(f"after {EPOCHS} epochs an example that is no member has the margin {margins.min()}")


def brute_force(setting: Setting) -> BruteForce:
    """SVC without each example in turn."""

    def trained() -> np.ndarray:
        n, f = len(setting.y), np.empty(len(setting.y))
        for i in range(n):
            rest = np.arange(n) != i
            model = setting.svc(tol=TOL).fit(setting.X[rest], setting.y[rest])
            f[i] = model.decision_function(setting.X[i : i + 1])[0]
        return f

    f, seconds, _ = timed(trained)
    return BruteForce(f, seconds)


def predictions(model: LASVM, setting: Setting) -> np.ndarray:
    """Of each example without itself, as StreamingLOO makes them."""
    y = setting.y > 0
    without, slots = beside(model, setting.X, y)
    bounds, f = without.bounds()[slots], without.decision_values()[slots]
    unknown = np.flatnonzero(bounds == UNKNOWN)
    without.prepare(len(unknown))
    predicted = np.where(bounds == UNCHANGED, f > 0, y == (bounds == RIGHT))
    for i in unknown.tolist():
        predicted[i] = without.without(slots[i : i + 1])[0] > 0
    return predicted


def loo_of(setting: Setting) -> dict:
    """One row of the table."""
    model, epochs = heeding_all(setting)
    loo = remembered(model, setting.X, setting.y > 0)
    outcomes = [timed(loo.estimate)[:2] for _ in range(TURNS)]
    estimate, seconds = outcomes[0][0], min(outcome[1] for outcome in outcomes)
    exact = brute_force(setting)
    apart = predictions(model, setting) != (exact.f > 0)
    return {
        "set": setting.task.name,
        "n": len(setting.y),
        "support": model.n_support,
        "epochs": epochs,
        "estimate": estimate,
        "error": float(np.mean((exact.f > 0) != (setting.y > 0))),
        "differ": int(apart.sum()),
        "by": float(np.abs(exact.f[apart]).max(initial=0.0)),
        "seconds": seconds,
        "retrainings": exact.seconds,
    }


def loo(options: argparse.Namespace) -> None:
    """Print the table and whether the aim is met."""
    found = []
    for name in options.sets:
        data = load(TASKS[name], options.data)
        found.append(loo_of(setting_of(TASKS[name], data.X.astype(np.float64), data.y)))
    rows = [
        [
            row["set"],
            str(row["n"]),
            str(row["support"]),
            str(row["epochs"]),
            f"{100 * row['estimate'].error.value:.2f}",
            f"{100 * row['error']:.2f}",
            f"{row['differ']}, {row['by']:.0e}" if row["differ"] else "0",
            str(row["n"] - row["estimate"].n_removed),
            str(row["estimate"].n_removed),
            f"{row['seconds']:.3g}",
            f"{row['retrainings']:.3g}",
            f"{row['retrainings'] / row['seconds']:.0f}",
        ]
        for row in found
    ]
    titles = "set|n|support|epochs|error %|brute force %|differ|decided|removed|s|n x SVC s|x"
    print("\n" + table(titles, rows) + "\n")
    for row in found:
        ratio = row["retrainings"] / row["seconds"]
        say(f"{row['set']}, {AIM} times as fast as retraining", f"{ratio:.0f}", ratio >= AIM)


def add_command(kinds: Any) -> None:
    """Add this file's sub-command to the command line."""
    one = kinds.add_parser("loo", help="StreamingLOO beside brute force")
    one.add_argument("--data", type=Path, default=argparse.SUPPRESS, help="folder of npz files; default: OpenML")
    one.add_argument("--sets", nargs="+", default=list(TASKS), choices=list(TASKS))
    one.set_defaults(run=loo)
