"""Active learning: which examples to ask a label for, and when to stop asking.

- `label_pool` labels examples in memory: start reading in `run`.
- `LabellingLoop` chooses from a pool, and keeps account of questions and answers.  `label_pool` and the trainer run it.
- `ActiveLearner` decides about each example of a stream as it passes.
- `learn_variants` teaches a model those virtual examples that it is least sure of.

The folder `answers` defines questions and answers, and `choosing` says what to ask and when to stop.  This room imports
from core, batch, online, metrics and validation.
"""

from streamsvm.active.answers.events import Action as Action
from streamsvm.active.answers.events import Answer as Answer
from streamsvm.active.answers.events import Ask as Ask
from streamsvm.active.answers.events import CurvePoint as CurvePoint
from streamsvm.active.answers.events import LoopCounts as LoopCounts
from streamsvm.active.answers.events import Missed as Missed
from streamsvm.active.answers.events import Question as Question
from streamsvm.active.answers.events import Refuse as Refuse
from streamsvm.active.answers.events import Retract as Retract
from streamsvm.active.answers.events import SetLabel as SetLabel
from streamsvm.active.answers.events import Status as Status
from streamsvm.active.answers.events import Withdraw as Withdraw
from streamsvm.active.answers.majority import majority as majority
from streamsvm.active.answers.question_book import Given as Given
from streamsvm.active.answers.question_book import Outcome as Outcome
from streamsvm.active.answers.question_book import QuestionBook as QuestionBook
from streamsvm.active.answers.suspects import Suspect as Suspect
from streamsvm.active.answers.suspects import suspects as suspects
from streamsvm.active.choosing.alike import NearDuplicates as NearDuplicates
from streamsvm.active.choosing.alike import near_duplicates as near_duplicates
from streamsvm.active.choosing.audited import Audited as Audited
from streamsvm.active.choosing.audited import EachClass as EachClass
from streamsvm.active.choosing.audited import missed_at_most as missed_at_most
from streamsvm.active.choosing.cut import pool_cut as pool_cut
from streamsvm.active.choosing.decisions import margins as margins
from streamsvm.active.choosing.mixed import MixedSelection as MixedSelection
from streamsvm.active.choosing.pool import ArrayPool as ArrayPool
from streamsvm.active.choosing.pool import Pool as Pool
from streamsvm.active.choosing.pool import StreamPool as StreamPool
from streamsvm.active.choosing.recall import RecallProof as RecallProof
from streamsvm.active.choosing.recall import answers_for_recall as answers_for_recall
from streamsvm.active.choosing.recall import missed_after_audit as missed_after_audit
from streamsvm.active.choosing.selection import ActiveSelection as ActiveSelection
from streamsvm.active.choosing.selection import AutoActiveSelection as AutoActiveSelection
from streamsvm.active.choosing.selection import Choice as Choice
from streamsvm.active.choosing.selection import GradientSelection as GradientSelection
from streamsvm.active.choosing.selection import RandomSelection as RandomSelection
from streamsvm.active.choosing.selection import Reason as Reason
from streamsvm.active.choosing.selection import Selection as Selection
from streamsvm.active.choosing.selection import pool_size as pool_size
from streamsvm.active.choosing.stopping import AllOf as AllOf
from streamsvm.active.choosing.stopping import Answered as Answered
from streamsvm.active.choosing.stopping import AnyOf as AnyOf
from streamsvm.active.choosing.stopping import StoppingRule as StoppingRule
from streamsvm.active.choosing.stopping import Verdict as Verdict
from streamsvm.active.choosing.stopping_rules import MarginExhausted as MarginExhausted
from streamsvm.active.choosing.stopping_rules import MaxFraction as MaxFraction
from streamsvm.active.choosing.stopping_rules import MaxLabels as MaxLabels
from streamsvm.active.choosing.stopping_rules import SupportStable as SupportStable
from streamsvm.active.choosing.words import rows_with_words as rows_with_words
from streamsvm.active.learner import ActiveLearner as ActiveLearner
from streamsvm.active.loop import LabellingLoop as LabellingLoop
from streamsvm.active.run import Step as Step
from streamsvm.active.run import carry_out as carry_out
from streamsvm.active.run import label_pool as label_pool
from streamsvm.active.to_recall import final_audit as final_audit
from streamsvm.active.to_recall import label_to_recall as label_to_recall
from streamsvm.active.variants import learn_variants as learn_variants
