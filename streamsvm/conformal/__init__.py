"""Decide alone where it is safe, and ask a person about the rest.

Start in `classifier`: a river classifier around a model that says which labels cannot be excluded.  `guard` makes these
decisions and keeps the promise about their errors; `past` has the probabilities of the past that it compares with,
and `left_out` those that help while labels are few.  `probabilities` asks models of every kind.  The room imports from
core, online, validation and estimators.
"""

from streamsvm.conformal.classifier import ConformalClassifier
from streamsvm.conformal.decision import Decision
from streamsvm.conformal.guard import Tally

__all__ = ["ConformalClassifier", "Decision", "Tally"]
