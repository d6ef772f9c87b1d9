"""The guard in a snapshot, and the model beside it."""

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from streamsvm.conformal.decision import Decision
from streamsvm.conformal.guard import Guard, OfClass
from streamsvm.conformal.scores import WINDOW, Record, Scores
from streamsvm.core.saving import snapshot
from streamsvm.core.saving.snapshot import SnapshotError, require, require_array
from streamsvm.estimators.inputs.features import PLAIN
from streamsvm.estimators.learners import LEARNERS
from streamsvm.estimators.multiclass.one_vs_one import OneVsOne
from streamsvm.estimators.multiclass.one_vs_rest import OneVsRest

MODELS: dict[str, Any] = {m.__name__: m for m in (*LEARNERS.values(), OneVsRest, OneVsOne)}
Arrays = dict[str, np.ndarray]


def model_bytes(model: Any) -> bytes:
    """A snapshot of the model."""
    if not any(isinstance(model, known) for known in MODELS.values()):
        raise SnapshotError(f"the model {model!r} cannot be saved; learners of this package can, as LASVM()")
    data: bytes = model.to_bytes()
    return data


def model_of(data: bytes, cache_mb: float | None, device: str | None) -> Any:
    """The model of a snapshot."""
    kind = snapshot.kind_of(data)
    require(kind in MODELS, f"the model is a {kind!r}")
    return MODELS[kind].from_bytes(data, cache_mb, device)


def dumped(guard: Guard) -> tuple[dict[str, Any], Arrays]:
    """What a guard has learned; probabilities are in the order of `labels`, NaN where a label was not known."""
    labels = list(dict.fromkeys([*guard.classes, *(c for r in _records(guard) for c in r.said.p)]))
    for label in labels:
        if type(label) not in PLAIN:
            raise SnapshotError(f"label {label!r} is a {type(label).__name__}; str, int, float and bool can be saved")
    place_of = {label: place for place, label in enumerate(labels)}
    arrays = _scores_dumped("pool", guard.pool)
    for k, (c, own) in enumerate(guard.classes.items()):
        arrays |= _scores_dumped(f"{k}.scores", own.scores) | _records_dumped(f"{k}.", own.records, place_of)
        arrays[f"{k}.left_out"] = np.array(guard.left_out.get(c, []), np.float64)
    tallies = [list(own.tally) for own in guard.classes.values()]
    levels = np.array([own.log_level for own in guard.classes.values()], np.float64)
    meta = {"labels": labels, "n_classes": len(guard.classes), "tallies": tallies, "n": guard.n}
    return meta, arrays | {"levels": levels}


def _records(guard: Guard) -> Iterable[Record]:
    return (record for own in guard.classes.values() for record in own.records)


def _scores_dumped(name: str, scores: Scores) -> Arrays:
    return {
        f"{name}.ids": np.array([number for number, _ in scores.arrived], np.int64),
        f"{name}.p": np.array([p for _, p in scores.arrived], np.float64),
    }


def _records_dumped(prefix: str, records: Iterable[Record], place_of: Mapping[Any, int]) -> Arrays:
    """Records as columns: of a decision only what a correction needs, its probabilities and whether it was alone."""
    kept = list(records)
    p = np.full((len(kept), len(place_of)), np.nan)
    for row, record in zip(p, kept, strict=True):
        for label, value in record.said.p.items():
            row[place_of[label]] = value
    return {
        f"{prefix}ids": np.array([record.id for record in kept], np.int64),
        f"{prefix}p": p,
        f"{prefix}alone": np.array([place_of[r.said.label] if r.said.decided else -1 for r in kept], np.int64),
        f"{prefix}own": np.array([np.nan if record.p is None else record.p for record in kept], np.float64),
        f"{prefix}steps": np.array([record.step for record in kept], np.float64),
    }


def restore(guard: Guard, meta: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
    """Take over what `dumped` gave."""
    labels, n = snapshot.field(meta, "labels", list), snapshot.count(meta, "n_classes")
    require(all(type(label) in PLAIN for label in labels) and len(set(labels)) == len(labels), "labels are no labels")
    require(n <= len(labels), f"{n} classes have {len(labels)} labels")
    tallies = snapshot.field(meta, "tallies", list)
    levels = require_array(arrays, "levels", np.float64, (n,))
    require(np.isfinite(levels).all() and (levels <= guard.highest).all(), "the levels are out of their range")
    guard.n, guard.pool = snapshot.count(meta, "n"), _scores(arrays, "pool")
    for k, (label, tally, level) in enumerate(zip(labels[:n], tallies, levels.tolist(), strict=True)):
        require(len(tally) == 3 and all(type(count) is int and count >= 0 for count in tally), f"tally={tally}")
        guard.classes[label] = own = OfClass(guard.alpha)
        own.set_level(level)
        own.n, own.n_decided, own.n_wrong = tally
        own.scores, own.records = _scores(arrays, f"{k}.scores"), _records_of(arrays, f"{k}.", labels)
        left_out = require_array(arrays, f"{k}.left_out", np.float64, (None,))
        require(len(left_out) <= WINDOW and (np.diff(left_out, prepend=0.0, append=1.0) >= 0.0).all(), "left_out")
        if len(left_out):
            guard.left_out[label] = left_out.tolist()


def _scores(arrays: Mapping[str, np.ndarray], name: str) -> Scores:
    ids = require_array(arrays, f"{name}.ids", np.int64, (None,)).tolist()
    p = require_array(arrays, f"{name}.p", np.float64, (len(ids),))
    require(len(ids) <= WINDOW and ((p >= 0.0) & (p <= 1.0)).all(), f"{name} are no probabilities")
    scores = Scores()
    scores.arrived, scores.ordered = deque(zip(ids, p.tolist(), strict=True)), sorted(p.tolist())
    return scores


def _records_of(arrays: Mapping[str, np.ndarray], prefix: str, labels: list) -> deque[Record]:
    ids = require_array(arrays, f"{prefix}ids", np.int64, (None,)).tolist()
    n = len(ids)
    p = require_array(arrays, f"{prefix}p", np.float64, (n, len(labels))).tolist()
    alone = require_array(arrays, f"{prefix}alone", np.int64, (n,)).tolist()
    own = require_array(arrays, f"{prefix}own", np.float64, (n,)).tolist()
    steps = require_array(arrays, f"{prefix}steps", np.float64, (n,)).tolist()
    require(all(-1 <= place < len(labels) for place in alone), "a decision is for no label")
    found = deque[Record](maxlen=WINDOW)
    for number, row, place, score, step in zip(ids, p, alone, own, steps, strict=True):
        of_labels = {label: value for label, value in zip(labels, row, strict=True) if value == value}
        left = tuple(of_labels) if place < 0 else (labels[place],)
        said = Decision(left, of_labels, None, None, 0)
        found.append(Record(number, said, None if score != score else score, step))
    return found
