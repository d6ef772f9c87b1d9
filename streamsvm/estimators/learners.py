"""The table of algorithms: the one place that says which name stands for which class."""

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

# With the one that tunes itself.  It is made of several of the others: `OneVsRest` does not take it.
LEARNERS: dict[str, Any] = {**ALGORITHMS, "auto": AutoLASVM}
