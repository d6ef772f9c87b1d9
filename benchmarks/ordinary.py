"""Training on ordinary tables: one pass with FINISH, and two fits to the optimum, beside SVC and intelex on one thread.

    python benchmarks/ordinary.py --data DIR            # sixteen sets
    python benchmarks/ordinary.py --data DIR --quick    # the small ones

Every fit runs in a process of its own with one thread, so that seconds are CPU seconds of that fit alone.  A fit that
takes less than a second is repeated, and the fastest counts: the first one of a process also pays for fresh memory.
At the end are geometric means of how many times faster ours are, and the worst set.
"""

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from datasets import ORDINARY_TASKS, Data, Task, load
from shared.elsewhere import elsewhere
from shared.tables import shown, table
from tqdm import tqdm

QUICK = ("banana", "segment", "abalone")
OURS = ("pass + finish", "fit", "smo.solve")
TITLES = (
    "set|rows, columns, % positive|pass + finish|fit|smo.solve|SVC|intelex|error %: pass, fit, solve, SVC|"
    "members, support vectors|SVC's"
)
REPEATS, ENOUGH = 3, 1.0  # fits at most, and seconds after which one is enough

Engines = dict[str, dict[str, float]]  # the figures of each engine on a set


class Trained(NamedTuple):
    """What an engine has trained."""

    predict: Callable[[Any], Any]
    members: int
    support: int
    kernel_values: int = 0  # 0: not counted


def trained_pass(data: Data, task: Task) -> Trained:
    """One pass of LASVM, and `finish`."""
    import streamsvm

    model = streamsvm.LASVM(C=task.C, gamma=task.gamma)
    model.learn_many(data.X, data.y)
    model.finish()
    return Trained(model.predict_many, model.n_members, model.n_support)


def trained_fit(data: Data, task: Task) -> Trained:
    """`LASVMClassifier.fit`, to the optimum."""
    from streamsvm.sklearn_api import LASVMClassifier

    model = LASVMClassifier(C=task.C, gamma=task.gamma).fit(data.X, data.y)
    online = model.model_
    return Trained(model.predict, online.n_members, online.n_support, online.kernel_evaluations)


def trained_solve(data: Data, task: Task) -> Trained:
    """`smo.solve`, to the optimum in double precision."""
    from streamsvm.batch import smo

    found = smo.solve(data.X, data.y, C=task.C, gamma=task.gamma)
    n = len(found.support)
    return Trained(lambda X: found.decision_function(X) > 0, n, n)


def trained_svc(data: Data, task: Task) -> Trained:
    """scikit-learn's SVC."""
    from sklearn.svm import SVC

    return of_sklearn(SVC(C=task.C, gamma=task.gamma).fit(data.X, data.y))


def trained_intelex(data: Data, task: Task) -> Trained:
    """scikit-learn-intelex's SVC on dense float32, the faster of its forms."""
    from sklearnex.svm import SVC

    return of_sklearn(SVC(C=task.C, gamma=task.gamma).fit(data.X, data.y))


def of_sklearn(model: Any) -> Trained:
    """A model with the attributes of SVC."""
    n = int(np.sum(model.n_support_))
    return Trained(model.predict, n, n)


ENGINES: dict[str, Callable[[Data, Task], Trained]] = {
    "pass + finish": trained_pass,
    "fit": trained_fit,
    "smo.solve": trained_solve,
    "SVC": trained_svc,
    "intelex": trained_intelex,
}


def dense(data: Data) -> Data:
    """The data as dense float32."""
    parts = [np.asarray(X.todense() if sp.issparse(X) else X, np.float32) for X in (data.X, data.X_test)]
    return data._replace(X=parts[0], X_test=parts[1])


def measured(task: Task, engine: str, folder: Path | None) -> dict[str, float]:
    """The figures of one engine on one set; compiled code is loaded before the clock starts."""
    data, train = load(task, folder), ENGINES[engine]
    if engine == "intelex":
        data = dense(data)
    if engine in OURS:
        import streamsvm

        streamsvm.warmup()
    few = np.concatenate([np.flatnonzero(data.y > 0)[:20], np.flatnonzero(data.y < 0)[:20]])
    train(data._replace(X=data.X[few], y=data.y[few]), task)
    seconds: list[float] = []
    while len(seconds) < REPEATS and (not seconds or seconds[-1] < ENOUGH):
        start = time.process_time()
        model = train(data, task)
        seconds.append(time.process_time() - start)
    said = np.asarray(model.predict(data.X_test)).astype(int)
    return {
        "seconds": min(seconds),
        "error": 100.0 * float(np.mean((said > 0) != (data.y_test > 0))),
        "support": model.support,
        "members": model.members,
        "rows": data.X.shape[0],
        "columns": data.X.shape[1],
        "positive": 100.0 * float(np.mean(data.y > 0)),
    }


def compare(names: list[str], folder: Path | None) -> None:
    """Print the table, and the means below it."""
    every: dict[str, Engines] = {}
    for name in tqdm(names, leave=False):
        of_set = {engine: elsewhere(__file__, "--only", name, engine, data=folder) for engine in ENGINES}
        every[name] = {engine: figures for engine, figures in of_set.items() if figures}
    print(table(TITLES, [row_of(name, of_set) for name, of_set in every.items()]) + "\n")
    for theirs in ("SVC", "intelex"):
        for ours in OURS:
            print_ratios(every, theirs, ours)


def row_of(name: str, of_set: Engines) -> list[str]:
    """A row of the table."""
    seconds = [shown(of_set[engine]["seconds"] if engine in of_set else None, "{:.3f}") for engine in ENGINES]
    plain = [engine for engine in (*OURS, "SVC") if engine in of_set]
    errors = ", ".join(f"{of_set[engine]['error']:.2f}" for engine in plain)
    ours, theirs = of_set.get(OURS[0], {}), of_set.get("SVC", {})
    sizes = ", ".join(shown(ours.get(key)) for key in ("members", "support"))
    shape = ", ".join(f"{ours[key]:.0f}" for key in ("rows", "columns", "positive")) if ours else "-"
    return [name, shape, *seconds, errors, sizes, shown(theirs.get("support"))]


def print_ratios(every: dict[str, Engines], theirs: str, ours: str) -> None:
    """Print how many times faster ours is, in the geometric mean and on the worst set."""
    ratios = {name: f[theirs]["seconds"] / f[ours]["seconds"] for name, f in every.items() if {theirs, ours} <= {*f}}
    if ratios:
        worst = min(ratios, key=lambda name: ratios[name])
        mean = float(np.exp(np.mean(np.log(list(ratios.values())))))
        print(
            f"- {theirs} takes {mean:.1f} times as long as `{ours}` in the geometric mean of {len(ratios)} sets, ",
            end="",
        )
        print(f"and {ratios[worst]:.2f} times on {worst}, the smallest ratio.")


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of npz files; default: OpenML, which has most of the sets")
    parser.add_argument("--tasks", nargs="+", default=list(ORDINARY_TASKS), choices=list(ORDINARY_TASKS))
    parser.add_argument("--quick", action="store_true", help="the small sets only")
    parser.add_argument("--only", nargs=2, metavar=("SET", "ENGINE"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.only:
        name, engine = arguments.only
        print(json.dumps(measured(ORDINARY_TASKS[name], engine, arguments.data)))
    else:
        compare(list(QUICK) if arguments.quick else arguments.tasks, arguments.data)


if __name__ == "__main__":
    main()
