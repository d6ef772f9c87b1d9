"""Export of a model in LIBSVM's text format, with a second file that explains it.

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
from pathlib import Path
from typing import Any

import numpy as np
from river import compose

from streamsvm import Mixture, WarmupScaler, load
from streamsvm.conformal import ConformalClassifier
from streamsvm.core.kernel_table import KERNELS
from streamsvm.core.saving import snapshot
from streamsvm.core.scaling import CLIP
from streamsvm.estimators.learner.classifier import OnlineSVM
from streamsvm.estimators.learners import FOR_TWO_CLASSES
from streamsvm.features import Records

from ..records.models import Model, MulticlassModel, ServedModel
from ..runtime.folders import FileError
from ..settings.sections import ConfigError
from ..trainer.state.models import KeyedModels
from ..trainer.state.stored_state import choose_model, read_state

_KERNELS = {"rbf": "rbf", "linear": "linear", "poly": "polynomial", "sigmoid": "sigmoid"}  # our names, and LIBSVM's
BEFORE = (WarmupScaler, Records, type(None))  # what may stand before a model in a pipeline
_MAX_NUMBER = 2**31 - 2  # largest number of a feature, a C int in LIBSVM


def export_model(
    model: Model, path: Path | str, scaler: WarmupScaler | None = None, label: str | None = None
) -> tuple[Path, Path]:
    """Write a model in LIBSVM's format, and a second file that explains its numbers.

    Parameters
    ----------
    model
        A model of any algorithm, with any kernel.
    path
        The file to write; ``.json`` is appended for the name of the second file.
    scaler
        The scaler through which the model has learned; None: the model has learned features as they came, and may
        scale them itself.
    label
        The class whose model is written, as text, if the model has more than two classes; None: it has two.

    Returns
    -------
    tuple
        Both files.

    Raises
    ------
    ValueError
        If the class is missing, unknown or superfluous, if the model has no support vectors, or if a feature's name
        cannot be written to a file.
    """
    of_label = chosen(model, label)
    if not of_label.n_support:
        raise ValueError("the model has no support vectors: it has not learned from both classes yet")
    numbers = feature_numbers(of_label.feature_names)
    target = Path(path)
    legend = target.with_name(f"{target.name}.json")
    text, meaning = "\n".join(_lines(of_label, numbers)) + "\n", _meaning(of_label, numbers, scaler)
    if isinstance(model, MulticlassModel):
        meaning["labels"] = {"1": _labels(model)[str(label)], "-1": None}
    snapshot.write_atomic(legend, (json.dumps(meaning, indent=1, ensure_ascii=False) + "\n").encode())
    snapshot.write_atomic(target, text.encode("ascii"))
    return target, legend


def chosen(model: Model, label: str | None) -> OnlineSVM:
    """The model to export: of more than two classes, that of the class whose text `label` is."""
    if not isinstance(model, MulticlassModel):
        if label is not None:
            raise ValueError(f"--label {label} chooses among more than two classes; this model has two")
        if isinstance(model, Mixture):
            raise ValueError("a mixture cannot be exported: its experts have no such form; use another algorithm")
        return model
    known = _labels(model)
    if label not in known:
        asked = "" if label is None else f"{label!r} is none of them; "
        choice = f"--label {'|'.join(known)}"
        raise ValueError(f"this model has several classes, and a file has the model of one: {asked}use {choice}")
    return model._binary(known[label])


def _labels(model: MulticlassModel) -> dict[str, Any]:
    """The classes, by their texts."""
    return {str(label): label for label in model.labels}


def feature_numbers(names: Sequence[Hashable]) -> np.ndarray:
    """The number of each feature, from 1.

    Parameters
    ----------
    names
        Names of the features. If all are texts such as "7", these are the numbers. If all are whole numbers, columns
        of an array, the numbers are larger by one. Otherwise the features are numbered in this order.

    Raises
    ------
    ValueError
        If a name is neither a text nor a number.
    """
    for name in names:
        if type(name) not in (str, int, float, bool):
            raise ValueError(
                f"the feature name {name!r} is a {type(name).__name__}; str, int, float and bool names can be exported"
            )
    if all(type(name) is int and 0 <= name < _MAX_NUMBER for name in names):
        return np.array([name + 1 for name in names], np.int64)  # type: ignore[operator]
    if all(type(name) is str and re.fullmatch(r"[1-9][0-9]{0,8}", name) for name in names):
        return np.array([int(name) for name in names], np.int64)  # type: ignore[call-overload]
    return np.arange(1, len(names) + 1)


def _lines(model: OnlineSVM, numbers: np.ndarray) -> Iterator[str]:
    """The lines of the model file."""
    alpha, vectors = model.dual_coef, model.support_vectors
    parameters = {"degree": int(model.degree), "gamma": model.gamma_in_use, "coef0": float(model.coef0)}
    order = np.argsort(alpha < 0.0, kind="stable")  # the positive class comes first
    yield "svm_type c_svc"
    yield f"kernel_type {_KERNELS[model.kernel]}"
    for name in KERNELS[model.kernel].parameters:
        yield f"{name} {parameters[name]!r}"
    yield "nr_class 2"
    yield f"total_sv {len(alpha)}"
    yield f"rho {model.decision_threshold - model.bias}"  # a difference is never -0
    yield "label 1 -1"
    yield f"nr_sv {np.count_nonzero(alpha > 0.0)} {np.count_nonzero(alpha < 0.0)}"
    yield "SV"
    for row in order.tolist():
        own = slice(vectors.indptr[row], vectors.indptr[row + 1])
        columns, values = numbers[vectors.indices[own]], vectors.data[own].astype(np.float64)
        rising = np.argsort(columns)  # LIBSVM requires rising numbers
        pairs = zip(columns[rising].tolist(), values[rising].tolist(), strict=True)
        yield " ".join([repr(float(alpha[row])), *(f"{number}:{value:.9g}" for number, value in pairs)])


def _meaning(model: OnlineSVM, numbers: np.ndarray, scaler: WarmupScaler | None) -> dict[str, Any]:
    features: list[dict[str, Any]] = []
    for number, name in zip(numbers.tolist(), model.feature_names, strict=True):
        features.append({"number": number, "name": name, **_scale(model, scaler, name)})
    below, above = model.slopes
    return {
        "format": "libsvm",
        "labels": {"1": True, "-1": False},
        "features": sorted(features, key=lambda feature: feature["number"]),
        "probability": {"slope_negative": below, "slope_positive": above, "threshold": model.decision_threshold},
    }


def _scale(model: OnlineSVM, scaler: WarmupScaler | None, name: Hashable) -> dict[str, float]:
    """How a feature is scaled, in the words of the second file; empty if it is not."""
    if scaler is not None:
        shift, factor = scaler.scale_of(name)
        return {"shift": shift, "factor": factor}
    shift, factor = model.scale_of(name)
    return {} if (shift, factor) == (0.0, 1.0) else {"shift": shift, "factor": factor, "limit": CLIP}


def read_model(path: Path, partition: int | None = None, key: str | None = None) -> ServedModel:
    """Read a model from a file that `streamsvm.save` wrote, or from a trainer's state folder.

    Parameters
    ----------
    path
        The file or folder.
    partition, key
        The model, in a folder with several; None: the folder has only one.

    Raises
    ------
    FileError
        If there is no such file.
    ConfigError
        If the folder has no model, or several without a choice, or if a choice was made in a file.
    SnapshotError
        If the file is damaged, or holds something other than a model.
    """
    if path.is_dir():
        model, stored = choose_model(read_state(path), path, partition, key)
        wanted = key.encode() if key is not None else None
        if wanted is None and isinstance(stored.models, KeyedModels):
            wanted = next(iter(stored.models.keys()))  # its only one
        return ServedModel(model, stored.scaler, {}, stored.models.records(wanted), stored.models.decider(wanted))
    if partition is not None or key is not None:
        raise ConfigError([f"{path}: --partition and --key go with a state folder only"])
    if not path.exists():
        raise FileError(f"{path}: there is no such file or folder")
    found = load(path)
    *before, model = found.steps.values() if isinstance(found, compose.Pipeline) else [found]
    decider = model if isinstance(model, ConformalClassifier) else None
    model = model if decider is None else decider.model
    classes = (*FOR_TWO_CLASSES.values(), MulticlassModel)
    if not isinstance(model, classes) or len(before) > 1 or not isinstance((*before, None)[0], BEFORE):
        raise snapshot.SnapshotError(
            f"{path}: this is a {snapshot.kind_of(snapshot.read(path))!r} snapshot, expected a model "
            f"({', '.join(made.__name__ for made in classes)}), also behind Records or a WarmupScaler, or a trainer's "
            "state folder"
        )
    scaler = next((step for step in before if isinstance(step, WarmupScaler)), None)
    return ServedModel(model, scaler, {}, next((step for step in before if isinstance(step, Records)), None), decider)
