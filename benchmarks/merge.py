"""One model of a whole stream beside models of its parts: their mean, and what `streamsvm.merge` makes of them.

    python benchmarks/merge.py --data DIR            # minutes; without --data, from OpenML
    python benchmarks/merge.py --data DIR --quick

A stream is split into 1, 2, 4 and 8 parts: at random, or by the feature with the most different values, so that each
part sees a region of its own.  A model learns each part, and finishes.  Errors in percent on a test part: of one model
that learned everything, of the mean of the parts' decision values, and of the merged model.  Then CPU seconds on one
thread: of learning the whole stream, of the slowest part, and of merging.
"""

import argparse
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from datasets import ORDINARY_TASKS, TASKS, Data, Task, load
from shared.tables import table
from tqdm import tqdm

import streamsvm

PARTS = (1, 2, 4, 8)
N_MNIST = 20000
SETS = (
    ORDINARY_TASKS["a9a"],
    ORDINARY_TASKS["ijcnn1"],
    ORDINARY_TASKS["covtype"],
    TASKS["mnist"]._replace(n_train=N_MNIST),
)
QUICK = ("a9a", "ijcnn1")


def learned(task: Task, data: Data, rows: np.ndarray) -> tuple[streamsvm.LASVM, float]:
    """The finished model of these rows, which are its ids, and its CPU seconds."""
    start = time.process_time()
    model = streamsvm.LASVM(C=task.C, gamma=task.gamma)
    model.learn_many(data.X[rows], data.y[rows], ids=rows)
    model.finish()
    return model, time.process_time() - start


def by_feature(X: np.ndarray | sp.csr_matrix) -> np.ndarray:
    """The rows in the order of the feature with the most different values; equal ones at random."""
    columns = sp.csc_matrix(X)
    different = [len(np.unique(columns.data[a:b])) for a, b in zip(columns.indptr, columns.indptr[1:], strict=False)]
    values = np.asarray(columns[:, int(np.argmax(different))].todense()).ravel()
    return np.lexsort((np.random.default_rng(0).random(len(values)), values))


def error(decided: np.ndarray, data: Data) -> float:
    return 100.0 * float(np.mean((decided > 0) != (data.y_test > 0)))


class Merged(NamedTuple):
    """What one split of a stream came to: errors in percent, and CPU seconds."""

    mean: float
    merged: float
    members: int
    slowest: float  # of the parts
    merging: float


def of_parts(task: Task, data: Data, order: np.ndarray, n_parts: int) -> Merged:
    """Learn so many parts, and merge them."""
    rows = [np.sort(own) for own in np.array_split(order, n_parts)]
    parts, seconds = zip(*(learned(task, data, own) for own in rows), strict=True)
    mean = np.mean([part.decision_function_many(data.X_test) for part in parts], axis=0)
    start = time.process_time()
    merged = streamsvm.merge(parts)
    merging = time.process_time() - start
    decided = np.asarray(merged.decision_function_many(data.X_test))
    return Merged(error(mean, data), error(decided, data), merged.n_members, max(seconds), merging)


def compare(task: Task, folder: Path | None) -> tuple[list[str], list[list[str]]]:
    """A row of errors with most parts, and rows of all splits."""
    data = load(task, folder)
    n = data.X.shape[0]
    learned(task, data, np.arange(min(n, 500)))
    whole, seconds = learned(task, data, np.arange(n))
    alone = error(np.asarray(whole.decision_function_many(data.X_test)), data)
    errors = [f"{task.name}, {n} rows", f"{alone:.2f}"]
    rows = [[task.name, "one model", "1", "", f"{alone:.2f}", f"{whole.n_members}", f"{seconds:.2f}", ""]]
    for split, order in (("at random", np.arange(n)), ("by a feature", by_feature(data.X))):
        for n_parts in PARTS:
            one = of_parts(task, data, order, n_parts)
            cells = [
                f"{one.mean:.2f}",
                f"{one.merged:.2f}",
                f"{one.members}",
                f"{one.slowest:.2f}",
                f"{one.merging:.2f}",
            ]
            rows.append([task.name, split, f"{n_parts}", *cells])
        errors += [f"{one.mean:.2f}", f"{one.merged:.2f}"]
    return errors, rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, metavar="DIR", help="folder with the sets; default: from OpenML")
    parser.add_argument("--quick", action="store_true", help="two sets only")
    args = parser.parse_args()
    tasks = [task for task in SETS if not args.quick or task.name in QUICK]
    errors, rows = zip(*(compare(task, args.data) for task in tqdm(tasks, leave=False)), strict=True)
    print(f"## Errors with {PARTS[-1]} parts\n")
    print(table(f"|one model|mean of {PARTS[-1]} models|merged|mean of {PARTS[-1]} regions|merged", list(errors)))
    print("\n## All splits\n")
    titles = "set|split|parts|mean: error %|merged: error %|members|learning, s: the slowest part|merging, s"
    print(table(titles, [row for of_task in rows for row in of_task]))


if __name__ == "__main__":
    main()
