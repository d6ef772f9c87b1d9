"""The events and labels that the join keeps: how much memory they take, and how a checkpoint has them."""

import math
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from operator import attrgetter

import numpy as np

from streamsvm.conformal import Decision
from streamsvm.core.saving.snapshot import require_array

from ...records.classes import ClassLabel, KnownClasses
from ...records.decisions import from_json, to_json
from .byte_strings import packed, unpacked
from .lesson import ABSENT, Told

NEVER = -(1 << 63)  # before all times, revisions and offsets
FORGET = (None, 0.0)  # y and w of the lesson to forget an example

_PER_VALUE = 32  # bytes of a decision value
_VERDICT = 512  # bytes of a decision beside its probabilities
_OVERHEAD = 512  # bytes of an entry beside its event: its objects, and its place in the table
_TAKEN_BACK = -2  # in a checkpoint: the last lesson was to forget


@dataclass(slots=True)
class Entry:
    """An event; or a label that waits for its event, whose `value` is None."""

    since: int  # the clock at its arrival
    value: bytes | None
    entity: bytes | None
    w: float | None  # the event's, or the waiting label's
    rev: int  # this and the next two: the newest label
    offset: int
    y: ClassLabel | None  # None: no label yet, or a retraction
    at: int = ABSENT  # offset of the event's record
    taught: tuple[ClassLabel | None, float] | None = None  # y and w of the last lesson
    margin: float = 0.0  # this and the next three: what was said of it, see `Told`
    predicted: ClassLabel | None = None
    decision: tuple[float, ...] | None = None
    verdict: Decision | None = None

    @property
    def told(self) -> Told:
        """What was said of it.  Its parts are kept: an object more would take the garbage collector time."""
        return Told(self.margin, self.predicted, self.decision, self.verdict)

    @property
    def nbytes(self) -> int:
        """Memory that it takes."""
        n_bytes = _OVERHEAD + len(self.value or b"") + len(self.entity or b"") + _PER_VALUE * len(self.decision or ())
        return n_bytes if self.verdict is None else n_bytes + _VERDICT + _PER_VALUE * len(self.verdict.p)


class Waiting:
    """Entries of one kind, events or labels without an event, and the memory they take."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.nbytes = 0
        # By key, oldest first: new entries go to the end, and the clock never goes back.  A plain dict is too slow: to
        # find its first item takes time in proportion to the items removed before it.
        self.entries: OrderedDict[int, Entry] = OrderedDict()

    def add(self, key: int, entry: Entry) -> None:
        self.entries[key] = entry
        self.nbytes += entry.nbytes

    def pop(self, key: int) -> Entry:
        entry = self.entries.pop(key)
        self.nbytes -= entry.nbytes
        return entry

    def tell(self, entry: Entry, told: Told) -> None:
        """Replace what was said of one of the entries."""
        self.nbytes -= entry.nbytes
        entry.margin, entry.predicted, entry.decision, entry.verdict = told
        self.nbytes += entry.nbytes


def to_columns(kept: Mapping[int, Entry], classes: KnownClasses) -> dict[str, np.ndarray]:
    """Entries by key as columns, in their order."""
    entries = kept.values()

    def column(name: str, dtype: type) -> np.ndarray:
        return np.fromiter(map(attrgetter(name), entries), dtype, len(entries))

    def numbers(labels: Iterable[ClassLabel | None]) -> np.ndarray:
        found = [*labels]
        number = {label: ABSENT if label is None else classes.number_of(label) for label in {*found}}
        return np.array([number[label] for label in found], dtype=np.int8 if classes.are_two else np.int16)

    taught_y = numbers(entry.taught and entry.taught[0] for entry in entries)
    taught_y[[entry.taught == FORGET for entry in entries]] = _TAKEN_BACK
    predicted = {} if classes.are_two else {"predicted": numbers(entry.predicted for entry in entries)}
    verdicts = [verdict and to_json(verdict) for verdict in map(attrgetter("verdict"), entries)]
    decisions = [entry.decision for entry in entries]
    values = np.fromiter(chain.from_iterable(filter(None, decisions)), np.float64)
    lengths = [ABSENT if said is None else values.itemsize * len(said) for said in decisions]
    return {
        "key": np.fromiter(kept, np.int64, len(kept)),
        **{name: column(name, np.int64) for name in ("since", "rev", "offset", "at")},
        "margin": column("margin", np.float64),
        "w": np.array([np.nan if entry.w is None else entry.w for entry in entries], dtype=np.float64),
        "y": numbers(entry.y for entry in entries),
        "taught_y": taught_y,
        "taught_w": np.array([entry.taught[1] if entry.taught else 0.0 for entry in entries], dtype=np.float64),
        **predicted,
        "decision": values.view(np.uint8),
        "decision_length": np.array(lengths, dtype=np.int64),
        **(packed("verdict", verdicts) if any(verdicts) else {}),
        **packed("value", [entry.value for entry in entries]),
        **packed("entity", [entry.entity for entry in entries]),
    }


def from_columns(arrays: Mapping[str, np.ndarray], classes: KnownClasses) -> Iterator[tuple[int, Entry]]:
    """The entries of such columns, with their keys."""
    n = len(require_array(arrays, "key", "i", (None,)))
    kinds = {"key": "i", "since": "i", "rev": "i", "offset": "i", "margin": "f", "w": "f", "y": "i"}
    kinds |= {"taught_y": "i", "taught_w": "f"}
    columns = [require_array(arrays, name, kind, (n,)).tolist() for name, kind in kinds.items()]
    for name in ("at", "predicted"):  # Checkpoints of older versions lack "at", and those of two classes "predicted".
        columns.append(require_array(arrays, name, "i", (n,)).tolist() if name in arrays else [ABSENT] * n)
    decisions = unpacked(arrays, "decision") if "decision" in arrays else [None] * n  # older versions lack them
    verdicts = unpacked(arrays, "verdict") if "verdict" in arrays else [None] * n  # so do checkpoints without [decide]
    rows = zip(*columns, unpacked(arrays, "value"), unpacked(arrays, "entity"), decisions, verdicts, strict=True)
    for key, since, rev, offset, margin, w, y, taught_y, taught_w, at, said, value, entity, decision, verdict in rows:
        weight = None if math.isnan(w) else w
        label, predicted = (None if number == ABSENT else classes.label_of(number) for number in (y, said))
        taught: tuple[ClassLabel | None, float] | None = None if taught_y == ABSENT else FORGET
        if taught and taught_y != _TAKEN_BACK:
            taught = (classes.label_of(taught_y), taught_w)
        values = None if decision is None else tuple(np.frombuffer(decision, np.float64).tolist())
        decided = None if verdict is None else from_json(verdict)
        told = (margin, predicted, values, decided)
        yield key, Entry(since, value, entity, weight, rev, offset, label, at, taught, *told)
