"""A model in LIBSVM's text format, and a second text that explains it.

LIBSVM decides by ``sum_s sv_coef_s k(x_s, x) - rho``, which is positive for the first label. sv_coef are the signed
coefficients of the support vectors, the first class first; rho is the model's threshold minus its bias. The kernels are
the same. LIBSVM's features have numbers from 1 and no names, so the names go into a second file, ``FILE.json``::

    {"format": "libsvm", "labels": {"1": true, "-1": false},
     "features": [{"number": 1, "name": "a", "shift": 0.5, "factor": 2.0, "limit": 3.0}, ...],
     "probability": {"slope_negative": ..., "slope_positive": ..., "threshold": ...}}

A model may scale features itself. A feature with a shift and a factor must therefore be scaled, as
(value - shift) * factor, before LIBSVM predicts it; if it has a limit L, it must then be cut to -L..L. If all names are
numbers, they are the features' numbers: "7", as in LIBSVM's own files, has the number 7, and so has column 6 of an
array. A feature that the model does not know may get any larger number.

With more than two classes, each class has a model that separates it from all others.  A file has one of these models:
the label 1 stands for the class, and -1 (null in the second file) for all others.  Predict the class whose model has
the largest decision value.

LIBSVM's probabilities, 1 / (1 + exp(A f + B)), have one slope. This model's have one slope on each side of the boundary
(see `online.outputs.sigmoid`), so A and B cannot express them, and the second file holds the slopes.  They belong to
LIBSVM's decision value plus the threshold.

Source: the README and the function svm_save_model of LIBSVM 3.37 (Chang and Lin, BSD-3-Clause).
"""

import json
import re
from collections.abc import Hashable, Iterator, Sequence
from typing import Any

import numpy as np

from streamsvm.core.kernel_table import KERNELS
from streamsvm.export.description import ONE_VS_ONE, THRESHOLD, Description, describe
from streamsvm.export.fields import require_numbers

NAMES = {"rbf": "rbf", "linear": "linear", "poly": "polynomial", "sigmoid": "sigmoid"}  # our names, and LIBSVM's
_MAX_NUMBER = np.iinfo(np.intc).max - 1  # largest number of a feature, a C int in LIBSVM


def to_libsvm(model: Any, label: str | None = None) -> tuple[str, str]:
    """A model in LIBSVM's format, and JSON that explains its numbers.

    Parameters
    ----------
    model
        The model; see `describe`, which also says what is raised.
    label
        The class whose model is written, as text, if the model has more than two classes; None: it has two.

    Raises
    ------
    ValueError
        If the class is missing, unknown or superfluous, or if the model takes raw records or votes by pairs.

    Examples
    --------
    >>> from streamsvm import LASVM
    >>> model = LASVM(gamma=0.5)
    >>> model.learn_many([{"a": 0.0}, {"a": 1.0}], [False, True])
    >>> text, meaning = to_libsvm(model)
    >>> text.splitlines()[:3]
    ['svm_type c_svc', 'kernel_type rbf', 'gamma 0.5']
    """
    found = describe(model)
    require_numbers(found.records, "LIBSVM")
    machine = _chosen(found, label)
    numbers = feature_numbers(found.features)
    meaning = json.dumps(_meaning(found, machine, numbers), indent=1, ensure_ascii=False) + "\n"
    return "\n".join(_lines(found, machine, numbers)) + "\n", meaning


def _chosen(found: Description, label: str | None) -> int:
    """The number of the machine to write: of more than two classes, that of the class whose text `label` is."""
    if found.decision == ONE_VS_ONE:
        raise ValueError("a OneVsOne cannot be written in LIBSVM's format; a OneVsRest can")
    known = [str(own) for own in found.labels]
    if found.decision == THRESHOLD:
        if label is not None:
            raise ValueError(f"--label {label} chooses among more than two classes; this model has two")
        return 0
    if label not in known:
        asked = "" if label is None else f"{label!r} is none of them; "
        choice = f"--label {'|'.join(known)}"
        raise ValueError(f"this model has several classes, and a file has the model of one: {asked}use {choice}")
    return known.index(label)


def feature_numbers(names: Sequence[Hashable]) -> np.ndarray:
    """The number of each feature, from 1.

    Parameters
    ----------
    names
        Names of the features. If all are texts such as "7", these are the numbers. If all are whole numbers, columns
        of an array, the numbers are larger by one. Otherwise the features are numbered in this order.
    """
    if all(type(name) is int and 0 <= name < _MAX_NUMBER for name in names):
        return np.array([name + 1 for name in names], np.int64)  # type: ignore[operator]
    if all(type(name) is str and re.fullmatch(r"[1-9][0-9]{0,8}", name) for name in names):
        return np.array([int(name) for name in names], np.int64)  # type: ignore[call-overload]
    return np.arange(1, len(names) + 1)


def _lines(found: Description, machine: int, numbers: np.ndarray) -> Iterator[str]:
    """The lines of the model file."""
    alpha = found.coefficients[machine]
    support = np.flatnonzero(alpha)
    order = support[np.argsort(alpha[support] < 0.0, kind="stable")]  # the positive class comes first
    parameters = {"degree": found.degree, "gamma": found.gamma[order[0]].item(), "coef0": float(found.coef0)}
    yield "svm_type c_svc"
    yield f"kernel_type {NAMES[found.kernel]}"
    for name in KERNELS[found.kernel].parameters:
        yield f"{name} {parameters[name]!r}"
    yield "nr_class 2"
    yield f"total_sv {len(order)}"
    yield f"rho {found.threshold - found.bias[machine].item()}"  # a difference is never -0
    yield "label 1 -1"
    yield f"nr_sv {np.count_nonzero(alpha > 0.0)} {np.count_nonzero(alpha < 0.0)}"
    yield "SV"
    digits = 17 if found.kernel == "linear" else 9  # A sum of members is in double precision.
    for row in order.tolist():
        own = slice(found.members.indptr[row], found.members.indptr[row + 1])
        columns, values = numbers[found.members.indices[own]], found.members.data[own]
        rising = np.argsort(columns)  # LIBSVM requires rising numbers
        pairs = zip(columns[rising].tolist(), values[rising].tolist(), strict=True)
        yield " ".join([repr(float(alpha[row])), *(f"{number}:{value:.{digits}g}" for number, value in pairs)])


def _meaning(found: Description, machine: int, numbers: np.ndarray) -> dict[str, Any]:
    limit = {"limit": found.limit} if np.isfinite(found.limit) else {}
    features: list[dict[str, Any]] = []
    for number, name, shift, factor in zip(
        numbers.tolist(), found.features, found.shift.tolist(), found.factor.tolist(), strict=True
    ):
        scale = {} if (shift, factor) == (0.0, 1.0) else {"shift": shift, "factor": factor, **limit}
        features.append({"number": number, "name": name, **scale})
    below, above = found.slopes[machine].tolist()
    other, own = (None, found.labels[machine]) if found.decision != THRESHOLD else found.labels
    return {
        "format": "libsvm",
        "labels": {"1": own, "-1": other},
        "features": sorted(features, key=lambda feature: feature["number"]),
        "probability": {"slope_negative": below, "slope_positive": above, "threshold": found.threshold},
    }
