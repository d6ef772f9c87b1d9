"""n_jobs: every back end of joblib gives the values of one process."""

from contextlib import contextmanager

import joblib
import numpy as np
import pytest
from joblib.parallel import ThreadingBackend

from streamsvm import LASVM
from streamsvm.validation import cross_validate, grid_search


@contextmanager
def dask():
    """Workers of Dask, as threads of this process; examples/dask_grid.py has processes."""
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(2, threads_per_worker=1, processes=False, dashboard_address=None) as cluster,
        distributed.Client(cluster),
        joblib.parallel_config(backend="dask"),
    ):
        yield


class WithoutGenerators(ThreadingBackend):
    """As Ray's back end: it gives all results at the end. examples/ray_grid.py asks Ray itself."""

    supports_return_generator = False


joblib.register_parallel_backend("without-generators", WithoutGenerators)
BACKENDS = {
    "loky": lambda: joblib.parallel_config(backend="loky"),
    "threading": lambda: joblib.parallel_config(backend="threading"),
    "without generators": lambda: joblib.parallel_config(backend="without-generators"),
    "dask": dask,
}


@pytest.mark.long
@pytest.mark.parametrize("backend", BACKENDS)
def test_every_back_end_gives_the_same_results(backend):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 2))
    y = X[:, 0] + X[:, 1] ** 2 + 0.3 * rng.normal(size=90) > 0.7
    model, setting = LASVM(C=5.0, gamma=0.5), {"k": 6, "seeding": "best"}
    grid = {"Cs": [0.1, 1.0, 10.0], "gammas": [0.1, 1.0]}
    alone, search_alone = cross_validate(model, X, y, **setting), grid_search(model, X, y, **grid)
    with BACKENDS[backend]():
        several, search = (
            cross_validate(model, X, y, **setting, n_jobs=2),
            grid_search(model, X, y, **grid, n_jobs=2),
        )
    np.testing.assert_array_equal(several.decision_values, alone.decision_values)
    assert several.iterations == alone.iterations
    np.testing.assert_array_equal(search.scores, search_alone.scores)
    for one, other in zip(search.table, search_alone.table, strict=True):
        np.testing.assert_array_equal(one.result.decision_values, other.result.decision_values)
    assert (search.best.C, search.best.gamma) == (search_alone.best.C, search_alone.best.gamma)
