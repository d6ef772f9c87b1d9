"""Active learning: which examples to ask a label for, and when to stop asking.

- `label_pool` labels examples in memory: start reading in `run`.
- `LabellingLoop` chooses from a pool, and keeps account of questions and answers.  `label_pool` and the trainer run it.
- `ActiveLearner` decides about each example of a stream as it passes.
- `learn_variants` teaches a model those virtual examples that it is least sure of.

The folder `answers` defines questions and answers, and `choosing` says what to ask and when to stop.  This room imports
from core, batch, online, metrics and validation.
"""

from streamsvm.active.answers.events import (
    Action,
    Answer,
    Ask,
    CurvePoint,
    LoopCounts,
    Missed,
    Question,
    Refuse,
    Retract,
    SetLabel,
    Status,
    Withdraw,
)
from streamsvm.active.answers.majority import majority
from streamsvm.active.answers.question_book import Given, Outcome, QuestionBook
from streamsvm.active.answers.suspects import Suspect, suspects
from streamsvm.active.choosing.alike import NearDuplicates, near_duplicates
from streamsvm.active.choosing.audited import Audited, EachClass, missed_at_most
from streamsvm.active.choosing.cut import pool_cut
from streamsvm.active.choosing.decisions import margins
from streamsvm.active.choosing.mixed import MixedSelection
from streamsvm.active.choosing.pool import ArrayPool, Pool, StreamPool
from streamsvm.active.choosing.recall import RecallProof, answers_for_recall, missed_after_audit
from streamsvm.active.choosing.selection import (
    ActiveSelection,
    AutoActiveSelection,
    Choice,
    GradientSelection,
    RandomSelection,
    Reason,
    Selection,
    pool_size,
)
from streamsvm.active.choosing.stopping import AllOf, Answered, AnyOf, StoppingRule, Verdict
from streamsvm.active.choosing.stopping_rules import MarginExhausted, MaxFraction, MaxLabels, SupportStable
from streamsvm.active.choosing.words import rows_with_words
from streamsvm.active.learner import ActiveLearner
from streamsvm.active.loop import LabellingLoop
from streamsvm.active.run import Step, carry_out, label_pool
from streamsvm.active.to_recall import final_audit, label_to_recall
from streamsvm.active.variants import learn_variants

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
    "Audited",
    "AutoActiveSelection",
    "Choice",
    "CurvePoint",
    "EachClass",
    "Given",
    "GradientSelection",
    "LabellingLoop",
    "LoopCounts",
    "MarginExhausted",
    "MaxFraction",
    "MaxLabels",
    "Missed",
    "MixedSelection",
    "NearDuplicates",
    "Outcome",
    "Pool",
    "Question",
    "QuestionBook",
    "RandomSelection",
    "Reason",
    "RecallProof",
    "Refuse",
    "Retract",
    "Selection",
    "SetLabel",
    "Status",
    "Step",
    "StoppingRule",
    "StreamPool",
    "SupportStable",
    "Suspect",
    "Verdict",
    "Withdraw",
    "answers_for_recall",
    "carry_out",
    "final_audit",
    "label_pool",
    "label_to_recall",
    "learn_variants",
    "majority",
    "margins",
    "missed_after_audit",
    "missed_at_most",
    "near_duplicates",
    "pool_cut",
    "pool_size",
    "rows_with_words",
    "suspects",
]
