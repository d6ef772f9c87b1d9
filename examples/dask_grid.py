"""A grid search on a Dask cluster. joblib hands the trainings to its workers, here two processes of this machine.

On a real cluster, use `Client("tcp://SCHEDULER:8786")` in place of the LocalCluster, and install streamsvm on the
workers.
"""
# ruff: noqa: N806, T201 - X is the usual name; an example answers by printing

import numpy as np
from distributed import Client, LocalCluster
from joblib import parallel_config

from streamsvm import LASVM
from streamsvm.validation import cross_validate, grid_search


def main() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    y = (X**2).sum(axis=1) + 0.3 * rng.normal(size=400) < 1.4

    cluster = LocalCluster(n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=None)
    with cluster, Client(cluster), parallel_config(backend="dask"):
        search = grid_search(LASVM(), X, y, Cs=[0.1, 1.0, 10.0, 100.0], gammas=[0.01, 0.1, 1.0], n_jobs=-1)
        result = cross_validate(LASVM(C=search.best.C, gamma=search.best.gamma), X, y, n_jobs=-1)
    print(search.scores.round(3))
    print(f"C = {search.best.C:g}, gamma = {search.best.gamma:g}: 10-fold accuracy {result.accuracy:.3f}")


if __name__ == "__main__":  # the workers import this file
    main()
