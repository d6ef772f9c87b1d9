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

import numpy as np
import scipy.sparse as sp
from datasets import ORDINARY_TASKS, TASKS, Data, Task, load

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


def compare(task: Task, folder: Path | None) -> None:
    """Print a table."""
    data = load(task, folder)
    n = data.X.shape[0]
    learned(task, data, np.arange(min(n, 500)))
    whole, seconds = learned(task, data, np.arange(n))
    alone = error(np.asarray(whole.decision_function_many(data.X_test)), data)
    print(f"{task.name}: {n} examples; one model: error {alone:.2f} %, {whole.n_members} members, {seconds:.2f} s")
    print(f"{'split':12} parts  mean %  merged %  members  slowest part s  merging s")
    for split, order in (("at random", np.arange(n)), ("by a feature", by_feature(data.X))):
        for n_parts in PARTS:
            rows = [np.sort(own) for own in np.array_split(order, n_parts)]
            parts, of_parts = zip(*(learned(task, data, own) for own in rows), strict=True)
            mean = np.mean([part.decision_function_many(data.X_test) for part in parts], axis=0)
            start = time.process_time()
            merged = streamsvm.merge(parts)
            merging = time.process_time() - start
            decided = np.asarray(merged.decision_function_many(data.X_test))
            print(
                f"{split:12} {n_parts:5}  {error(mean, data):6.2f}  {error(decided, data):8.2f}  {merged.n_members:7}  "
                f"{max(of_parts):14.2f}  {merging:9.2f}",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, metavar="DIR", help="folder with the sets; default: from OpenML")
    parser.add_argument("--quick", action="store_true", help="two sets only")
    args = parser.parse_args()
    for task in SETS:
        if not args.quick or task.name in QUICK:
            compare(task, args.data)


if __name__ == "__main__":
    main()
