"""A warning of features that an example lacks: 0 stands for them, which may be far from all of their values.

This concerns models that scale: a temperature of 0 K among temperatures of 290 K moves the scale, too.  Words that a
text does not have are no fault, so sparse input is left alone.
"""

import warnings

import numpy as np

from streamsvm.core.scaling import CLIP
from streamsvm.estimators.inputs.features import FeatureTable
from streamsvm.estimators.inputs.scaling import RunningScale


class StreamWarning(UserWarning):
    """A stream from which the model cannot learn well: its features, its labels, or the model's parameters."""


def warn_of_lacking(features: FeatureTable, scale: RunningScale, columns: np.ndarray, n: int) -> None:
    """Warn once if one of n examples, which name these columns, lacks a scaled feature that is far from 0."""
    if features.told_of_lacking or not scale.is_active:
        return
    known = scale.when_named()
    times = np.bincount(columns[columns >= 0], minlength=len(features.columns))
    lacking = (times[known.columns] < n) & (np.abs(known.mean) > CLIP * known.deviation)
    if not lacking.any():
        return
    first = int(np.argmax(lacking))
    name = list(features.columns)[known.columns[first]]
    features.told_of_lacking = True
    warnings.warn(
        f"an example lacks the feature {name!r}, which then counts as 0, far from its mean of {known.mean[first]:.3g}: "
        "this spoils the prediction, and the scale if the example is learned; give every example a value, such as the "
        "mean, or 0 if it is meant",
        StreamWarning,
        stacklevel=4,
    )
