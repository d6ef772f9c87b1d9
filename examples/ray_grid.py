"""A grid search on a Ray cluster. joblib hands the trainings to its workers, here two processes of this machine.

On a real cluster, use `ray.init(address="auto")`, and install streamsvm on the workers.
"""
# ruff: noqa: N806, T201 - X is the usual name; an example answers by printing

import numpy as np
import ray
from joblib import parallel_config
from ray.util.joblib import register_ray

from streamsvm import LASVM
from streamsvm.validation import cross_validate, grid_search


def main() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    y = (X**2).sum(axis=1) + 0.3 * rng.normal(size=400) < 1.4

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    register_ray()
    with parallel_config(backend="ray"):
        search = grid_search(LASVM(), X, y, Cs=[0.1, 1.0, 10.0, 100.0], gammas=[0.01, 0.1, 1.0], n_jobs=2)
        result = cross_validate(LASVM(C=search.best.C, gamma=search.best.gamma), X, y, n_jobs=2)
    print(search.scores.round(3))
    print(f"C = {search.best.C:g}, gamma = {search.best.gamma:g}: 10-fold accuracy {result.accuracy:.3f}")
    ray.shutdown()


if __name__ == "__main__":
    main()
