"""The table of algorithms: the one place that says which name stands for which class."""

from collections.abc import Iterable
from typing import Any

from streamsvm.estimators.gap_family import LASVMG, LASVMI, LASVMNC, FullSVM
from streamsvm.estimators.lasvm import LASVM
from streamsvm.estimators.tuned.auto import AutoLASVM

ALGORITHMS: dict[str, type[LASVM] | type[LASVMG] | type[LASVMNC] | type[LASVMI] | type[FullSVM]] = {
    "lasvm": LASVM,
    "lasvm-g": LASVMG,
    "lasvm-nc": LASVMNC,
    "lasvm-i": LASVMI,
    "full": FullSVM,
}

# With the one that tunes itself.  It is made of several of the others: `OneVsOne` does not take it.
LEARNERS: dict[str, Any] = {**ALGORITHMS, "auto": AutoLASVM}


def not_a_model(model: Any, names: Iterable[str], hint: str = "") -> TypeError:
    """The error for what is no learner of these names, but was given as one."""
    if isinstance(model, type):
        return TypeError(f"model={model.__name__} is a class; give one of its learners, as {model.__name__}() makes it")
    return TypeError(f"model is of type {type(model).__name__}; it must be one of {', '.join(names)}{hint}")
