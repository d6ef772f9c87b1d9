"""Active learning: which examples to ask a label for, and when to stop asking."""

from streamsvm.active.desk import Desk as Desk
from streamsvm.active.desk import Given as Given
from streamsvm.active.desk import Outcome as Outcome
from streamsvm.active.learner import ActiveLearner as ActiveLearner
from streamsvm.active.loop import Action as Action
from streamsvm.active.loop import Answer as Answer
from streamsvm.active.loop import Ask as Ask
from streamsvm.active.loop import CurvePoint as CurvePoint
from streamsvm.active.loop import LabellingLoop as LabellingLoop
from streamsvm.active.loop import LoopCounts as LoopCounts
from streamsvm.active.loop import Question as Question
from streamsvm.active.loop import Reason as Reason
from streamsvm.active.loop import Refuse as Refuse
from streamsvm.active.loop import Retract as Retract
from streamsvm.active.loop import SetLabel as SetLabel
from streamsvm.active.loop import Status as Status
from streamsvm.active.loop import Withdraw as Withdraw
from streamsvm.active.pool import ArrayPool as ArrayPool
from streamsvm.active.pool import Pool as Pool
from streamsvm.active.pool import StreamPool as StreamPool
from streamsvm.active.run import Step as Step
from streamsvm.active.run import carry_out as carry_out
from streamsvm.active.run import label_pool as label_pool
from streamsvm.active.selection import ActiveSelection as ActiveSelection
from streamsvm.active.selection import AutoActiveSelection as AutoActiveSelection
from streamsvm.active.selection import Choice as Choice
from streamsvm.active.selection import GradientSelection as GradientSelection
from streamsvm.active.selection import RandomSelection as RandomSelection
from streamsvm.active.selection import Selection as Selection
from streamsvm.active.selection import margins as margins
from streamsvm.active.selection import pool_size as pool_size
from streamsvm.active.stopping import AllOf as AllOf
from streamsvm.active.stopping import Answered as Answered
from streamsvm.active.stopping import AnyOf as AnyOf
from streamsvm.active.stopping import MarginExhausted as MarginExhausted
from streamsvm.active.stopping import MaxFraction as MaxFraction
from streamsvm.active.stopping import MaxLabels as MaxLabels
from streamsvm.active.stopping import StoppingRule as StoppingRule
from streamsvm.active.stopping import SupportStable as SupportStable
from streamsvm.active.stopping import Verdict as Verdict

__all__ = [
    "Action",
    "ActiveLearner",
    "ActiveSelection",
    "AllOf",
    "Answer",
    "Answered",
    "AnyOf",
    "ArrayPool",
    "Ask",
    "AutoActiveSelection",
    "Choice",
    "CurvePoint",
    "Desk",
    "Given",
    "GradientSelection",
    "LabellingLoop",
    "LoopCounts",
    "MarginExhausted",
    "MaxFraction",
    "MaxLabels",
    "Outcome",
    "Pool",
    "Question",
    "RandomSelection",
    "Reason",
    "Refuse",
    "Retract",
    "Selection",
    "SetLabel",
    "Status",
    "Step",
    "StoppingRule",
    "StreamPool",
    "SupportStable",
    "Verdict",
    "Withdraw",
    "carry_out",
    "label_pool",
    "margins",
    "pool_size",
]
