"""A warning of features that most examples lack: 0 stands for them, which may be far from all of their values.

This concerns models that scale: a temperature of 0 K among temperatures of 290 K moves the scale, too.  A feature that
at least half of the examples have is guessed instead.  Words that a text does not have are no fault, so sparse input is
left alone.
"""

import numpy as np

from streamsvm.core.stream_warning import warn
from streamsvm.estimators.inputs.features import FeatureTable
from streamsvm.estimators.inputs.scaling import RunningScale


def warn_of_lacking(features: FeatureTable, scale: RunningScale, columns: np.ndarray, n: int) -> None:
    """Warn once if one of n examples, which name these columns, lacks a scaled feature that is far from 0."""
    if features.told_of_lacking or not scale.is_active:
        return
    far = scale.far_from_0()
    if not far:
        return
    times = np.bincount(columns[columns >= 0], minlength=len(features.columns))
    lacking = [column for column in far if times[column] < n]
    if not lacking:
        return
    name = list(features.columns)[lacking[0]]
    features.told_of_lacking = True
    warn(
        f"an example lacks the feature {name!r}, which then counts as 0, far from its values, such as "
        f"{far[lacking[0]]:.3g}: this spoils the prediction, and the scale if the example is learned; give every "
        "example a value, such as the mean, or 0 if it is meant"
    )
