"""Alarms: something has changed, with a bound on the rate of false alarms.

`errors` listens to whether predictions are wrong, and needs labels.  `inputs` listens to the features, and needs none.
`online.change` has the bets behind the second.  The folder imports `core`, `online` and the checks of input.
"""

from streamsvm.alarms.errors import ErrorAlarm
from streamsvm.alarms.inputs import InputAlarm

__all__ = ["ErrorAlarm", "InputAlarm"]
