"""Forgetting and leave-one-out estimates beside retraining; estimates along streams; bounded models; a long stream.

    python benchmarks/forget.py removal --picture FILE.png        # cost per removal, by the number of support vectors
    python benchmarks/forget.py tables --data DIR                 # every way to leave, on ordinary tables
    python benchmarks/forget.py loo --data DIR                    # StreamingLOO beside brute force; else from OpenML
    python benchmarks/forget.py stream --data DIR --pictures DIR  # the estimates beside fresh examples
    python benchmarks/forget.py bounded --picture FILE.png        # `budget` and `window` around an abrupt change
    python benchmarks/forget.py soak --budget 500 --picture FILE.png  # a million records
    python benchmarks/forget.py --quick --data DIR                # removal, tables, loo and bounded, small

Everything runs on one thread (BLAS included), after compiled code was loaded by a small problem.  `removal` and `loo`
are here, `tables` in `removals.py`, the others in `streams.py`.

`removal`: models of LASVM, finished, over noisy examples, a small C with mostly bounded support vectors and a large one
with mostly free ones.  Columns:

    forget       CPU microseconds of model.forget(id) for one support vector, the median of 30
    by           how many of them by the path and how many by steps, and events of a path, the mean
    leave out    CPU microseconds per removal of StreamingLOO, the inverse that all share included
    SVC, members LIBSVM, through scikit-learn's SVC, on the other members of the expansion; milliseconds
    SVC, all     the same on all other examples

`loo`: a LASVM learns all examples and finishes, again and again, until those that are no members do not violate either;
then StreamingLOO is asked for all of them, and SVC is trained n times on n - 1.  Both stop at a violation of 1e-3.
"decided" are the examples that StreamingLOO did not have to leave out, "removed" the others.  "differ": predictions
that differ from brute force, and the largest |f| of one.  Seconds are CPU seconds, of StreamingLOO the fastest of five.
"""

import argparse
import contextlib
import copy
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import removals
import streams
from crossval import Setting, say, setting_of, table, timed
from datasets import VALIDATION_TASKS, Task, load
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from streamsvm import LASVM, warmup
from streamsvm.batch import path
from streamsvm.online.removal.leave_out import RIGHT, UNCHANGED, UNKNOWN, LeaveOut
from streamsvm.validation import StreamingLOO

TASKS = {name: VALIDATION_TASKS[name] for name in ("heart", "ionosphere", "pima", "banana-1000")} | {
    "german": Task("german", 1.0, 0.05, "1", "standard", 1000, "credit-g", "bad")  # as in planning.py
}
SIZES = (200, 400, 800, 1600, 3200, 6400)
KINDS = {"bounded": 1.0, "free": 100.0}  # C
GAMMA, TOL = 0.1, 1e-3
REMOVALS, REMOVED, TURNS, EPOCHS = 30, 300, 5, 100
QUICK = (
    ["removal", "--sizes", "200", "400", "800"],
    ["tables", "--sets", "segment"],
    ["loo", "--sets", "heart", "ionosphere"],
    ["bounded", "--examples", "4000"],
)
AIM = 30  # times as fast as retraining


# ------------------------------------------------------------------------------------------------------------- removal


@contextlib.contextmanager
def followed() -> Iterator[list[int]]:
    """Events of each path that is followed meanwhile."""
    follow, events = path.follow, []

    def watched(*arguments: Any) -> tuple[int, int]:
        outcome, n = follow(*arguments)
        if outcome == path.COMPLETE:
            events.append(n)
        return outcome, n

    path.follow = watched
    try:
        yield events
    finally:
        path.follow = follow


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
    with followed() as events:
        for number in chosen.tolist():
            begin = time.process_time()
            one.forget(number)
            seconds.append(time.process_time() - begin)
    return {"forget": 1e6 * float(np.median(seconds)), "paths": len(events), "events": mean(events)}


def of_leave_out(model: LASVM, X: np.ndarray, y: np.ndarray) -> dict:
    """What each removal by StreamingLOO takes, of the examples that bounds do not decide."""
    without, slots = beside(model, X, y)
    unknown = slots[without.bounds()[slots] == UNKNOWN][:REMOVED]

    def remove() -> None:
        without.prepare(len(unknown))
        for slot in unknown:
            without.without(np.array([slot]))

    with followed() as events:
        seconds = timed(remove)[1]
    return {"leave out": 1e6 * seconds / max(1, len(unknown)), "left": len(unknown), "left by paths": len(events)}


def retrained(X: np.ndarray, y: np.ndarray, C: float) -> float:
    """Milliseconds of a training by LIBSVM without the first example; the median of three, or one that takes long."""
    seconds: list[float] = []
    while len(seconds) < 3 and sum(seconds) < 5.0:
        seconds.append(timed(lambda: SVC(C=C, gamma=GAMMA).fit(X[1:], y[1:]))[1])
    return 1e3 * float(np.median(seconds))


def removal_of(C: float, n: int) -> dict:
    """One row of the table."""
    X, y = noisy(n)
    model = LASVM(C=C, gamma=GAMMA)
    model.learn_many(X, y)
    model.finish(TOL)
    members = model.support_ids
    alpha = np.abs(model._expansion.alpha[model._expansion.alpha != 0.0])
    chosen = np.random.default_rng(0).choice(members[:-1], REMOVALS, replace=False)
    found = {"n": n, "support": model.n_support, "free": int(np.count_nonzero(alpha < C))}
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
                f"{row['paths']} + {REMOVALS - row['paths']}",
                f"{row['events']:.1f}",
                f"{row['leave out']:.0f}",
                f"{row['left by paths']} + {row['left'] - row['left by paths']}",
                f"{row['members']:.3g}",
                f"{row['all']:.3g}",
                f"{1e3 * row['members'] / row['forget']:.0f}",
                f"{1e3 * row['members'] / row['leave out']:.0f}",
            ]
            for row in found[kind]
        ]
        titles = "support vectors|free|forget us|paths + steps|events|leave out us|paths + steps"
        print(table(f"{titles}|SVC, members ms|SVC, all ms|x forget|x leave out", rows), flush=True)
    if options.picture:
        draw(found, options.picture)


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
        axes.grid(alpha=0.3)
    figure.axes[0].set_ylabel("microseconds per removal")
    figure.axes[0].legend()
    figure.savefig(picture, dpi=120)


def mean(values: list[int]) -> float:
    """Of none: 0."""
    return float(np.mean(values)) if values else 0.0


# ------------------------------------------------------------------------------------------------------- leave-one-out


class BruteForce(NamedTuple):
    """Decision values of n trainings on n - 1, and the CPU seconds that they took."""

    f: np.ndarray
    seconds: float


def remembered(model: LASVM, X: np.ndarray, y: np.ndarray) -> StreamingLOO:
    """StreamingLOO as if it had seen the model learn these."""
    loo = StreamingLOO(model, memory=len(y), share=0)
    loo.learned([dict(enumerate(row)) for row in X.tolist()], y, np.ones(len(y)), range(len(y)))
    return loo


def beside(model: LASVM, X: np.ndarray, y: np.ndarray) -> tuple[LeaveOut, np.ndarray]:
    """What StreamingLOO leaves examples out of, and their slots in it."""
    return model.leave_out([dict(enumerate(row)) for row in X.tolist()], y, None, np.arange(len(y)))


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


# ------------------------------------------------------------------------------------------------------------- running


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


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="removal, tables, loo and bounded, small")
    parser.add_argument("--data", type=Path, help="folder of npz files; default: OpenML")
    kinds = parser.add_subparsers()
    one = kinds.add_parser("removal", help="cost per removal against the number of support vectors")
    one.add_argument("--sizes", nargs="+", type=int, default=SIZES, help="examples; about half become support vectors")
    one.add_argument("--picture", type=Path, help="file for the picture; default: none is drawn")
    one.set_defaults(run=removal)
    one = kinds.add_parser("loo", help="StreamingLOO beside brute force")
    one.add_argument("--data", type=Path, default=argparse.SUPPRESS, help="folder of npz files; default: OpenML")
    one.add_argument("--sets", nargs="+", default=list(TASKS), choices=list(TASKS))
    one.set_defaults(run=loo)
    removals.add_commands(kinds)
    streams.add_commands(kinds)
    given = parser.parse_args()
    if not given.quick and "run" not in given:
        parser.error("one of removal, tables, loo, stream, bounded, soak, or --quick")
    todo = (
        [parser.parse_args(words, argparse.Namespace(data=given.data)) for words in QUICK] if given.quick else [given]
    )
    with threadpool_limits(1):
        warm_up()
        for options in todo:
            options.run(options)


if __name__ == "__main__":
    main()
