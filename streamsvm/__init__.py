"""streamsvm: kernel classifiers that learn from a stream, one example at a time."""

import time as _time
from importlib import import_module as _import_module
from importlib.util import find_spec as _find_spec
from typing import TYPE_CHECKING

from streamsvm._version import __version__ as __version__

if TYPE_CHECKING:
    from streamsvm.core.saving.snapshot import SnapshotError
    from streamsvm.core.threads import get_num_threads, set_num_threads
    from streamsvm.estimators.gap_family import LASVMG, LASVMI, LASVMNC, FullSVM
    from streamsvm.estimators.lasvm import LASVM
    from streamsvm.estimators.learner.advice import StreamWarning
    from streamsvm.estimators.learner.classifier import OnlineSVM as _OnlineSVM
    from streamsvm.estimators.merging import merge
    from streamsvm.estimators.mixture.mixture import Mixture
    from streamsvm.estimators.multiclass.one_vs_one import OneVsOne
    from streamsvm.estimators.multiclass.one_vs_rest import OneVsRest
    from streamsvm.estimators.tuned.auto import AutoLASVM
    from streamsvm.loading import load, save
    from streamsvm.preprocessing import WarmupScaler

__all__ = [
    "LASVM",
    "LASVMG",
    "LASVMI",
    "LASVMNC",
    "AutoLASVM",
    "FullSVM",
    "Mixture",
    "OneVsOne",
    "OneVsRest",
    "SnapshotError",
    "StreamWarning",
    "WarmupScaler",
    "get_num_threads",
    "load",
    "merge",
    "save",
    "set_num_threads",
    "warmup",
]

_HOMES = {  # A name is imported with its first use: numba and river take a second of CPU time.
    "SnapshotError": "core.saving.snapshot",
    "get_num_threads": "core.threads",
    "set_num_threads": "core.threads",
    "LASVMG": "estimators.gap_family",
    "LASVMI": "estimators.gap_family",
    "LASVMNC": "estimators.gap_family",
    "FullSVM": "estimators.gap_family",
    "LASVM": "estimators.lasvm",
    "StreamWarning": "estimators.learner.advice",
    "merge": "estimators.merging",
    "Mixture": "estimators.mixture.mixture",
    "OneVsRest": "estimators.multiclass.one_vs_rest",
    "OneVsOne": "estimators.multiclass.one_vs_one",
    "AutoLASVM": "estimators.tuned.auto",
    "load": "loading",
    "save": "loading",
    "WarmupScaler": "preprocessing",
}


if not TYPE_CHECKING:  # A type checker would take every name for one that exists.

    def __getattr__(name):
        """A public name, or a room such as ``streamsvm.batch``; imported now."""
        if name in _HOMES:
            value = getattr(_import_module(f"streamsvm.{_HOMES[name]}"), name)
            globals()[name] = value
            return value
        if not name.startswith("_") and _find_spec(f"streamsvm.{name}"):
            return _import_module(f"streamsvm.{name}")
        raise AttributeError(f"module 'streamsvm' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})


def warmup(
    *algorithms: "type[_OnlineSVM] | type[AutoLASVM] | type[Mixture]", removal: bool = False, classes: bool = False
) -> float:
    """Compile the engine's code before its first use; return the seconds that took.

    The code is kept in the user's cache folder, so that later processes start at once.  Call it when an image is built,
    or before a service starts, so that no first record waits for the compiler.

    Parameters
    ----------
    algorithms
        Classes that will be used, such as ``LASVM``.  Default: all classes, cross-validation, and, if scikit-learn is
        installed, `LASVMClassifier`.  LASVMG, LASVMNC, LASVMI and FullSVM share their compiled code.
    removal
        Whether to compile the code of `forget`, of a `budget`, of a `window` and of streaming estimates as well.
        Without `algorithms` it always is.
    classes
        Whether to compile the code of `OneVsRest` and `OneVsOne` as well.  Without `algorithms` it always is.

    Examples
    --------
    >>> import streamsvm
    >>> seconds = streamsvm.warmup(streamsvm.LASVM)
    """
    import numpy as np
    import scipy.sparse as sp

    from streamsvm import LASVM, LASVMG, AutoLASVM, Mixture, OneVsOne, OneVsRest
    from streamsvm.alarms import InputAlarm

    start = _time.perf_counter()
    chosen = [LASVM if algorithm in (AutoLASVM, Mixture) else algorithm for algorithm in algorithms]
    rng = np.random.default_rng(0)
    InputAlarm().update({"a": 1.0})
    for X in (rng.normal(size=(600, 2)), rng.normal(size=(64, 40)), 1.0 * (rng.random((400, 9)) < 0.5)):
        y = X.sum(axis=1) + rng.normal(size=len(X)) > 0
        for algorithm in chosen or (LASVM, LASVMG):
            model = algorithm(C=100.0, cache_mb=0.01)  # type: ignore[call-arg] # every algorithm has its own signature
            model.learn_many(X, y)
            model.learn_many(sp.csr_matrix(X), y)
            for x in (dict(enumerate(X[0])), {0: 1.0}):  # the second one has gaps
                model.learn_one(x, bool(y[0]))
                model.predict_one(x)
            model.explain_one(dict(enumerate(X[0])))
            model.predict_many(X)
            model.predict_many(X.astype(np.float32))
            model.predict_many(sp.csr_matrix(X[:, :2]))
            model.finish()
            model.from_bytes(model.to_bytes())
        if classes or not algorithms:
            labels = y + 2 * (X[:, 0] > X[:, 1])
            for algorithm in chosen or (LASVM, LASVMG):
                for wrapper in (OneVsRest, OneVsOne):
                    several = wrapper(algorithm(C=100.0))  # type: ignore[call-arg]
                    several.learn_many(X, labels)
                    several.learn_one(dict(enumerate(X[0])), labels[0])
                    several.learn_one({0: 1.0}, labels[0])
                    several.predict_many(X)
                    several.predict_proba_many(X)
                    several.finish()
                if removal or not algorithms:
                    OneVsRest(algorithm(window=50)).learn_many(X, labels)  # type: ignore[call-arg]
    if Mixture in algorithms or not algorithms:
        mixture = Mixture(LASVM())
        mixture.learn_many(rng.normal(size=(64, 2)), np.arange(64) % 2 == 0)
    if removal or not algorithms:
        from streamsvm.validation.compilation import compile_removal

        for algorithm in chosen or (LASVM, LASVMG):
            compile_removal(algorithm)
    if not algorithms:
        from streamsvm.conformal import ConformalClassifier
        from streamsvm.features import Records
        from streamsvm.validation.compilation import compile_ahead

        compile_ahead(LASVM)
        ConformalClassifier(LASVM()).learn_one({"a": 1.0}, True)
        wide = LASVM()
        wide.learn_many(sp.random(400, 100_000, density=1e-4, format="csr", random_state=0), np.arange(400) % 2 == 0)
        assert wide.delta >= 0.0
        records = Records({"words": "text"})
        records.learn_one({"words": "some words", "number": 1.0})
        records.transform_one({"words": "some more words"})
        if _find_spec("sklearn"):
            from streamsvm.sklearn_api.ahead import compile_fits

            compile_fits()
    return _time.perf_counter() - start
