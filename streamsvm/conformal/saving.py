"""The guard in a snapshot, and the model beside it."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from streamsvm.conformal.guard import Guard, OfClass
from streamsvm.conformal.past import Past
from streamsvm.core.saving import snapshot
from streamsvm.core.saving.snapshot import SnapshotError, require, require_array
from streamsvm.estimators.inputs.checks import plain_names, require_plain
from streamsvm.estimators.mixture.asking import KINDS
from streamsvm.online.outputs.past import ALONE, SAID, SCORE, STEP, WINDOW
from streamsvm.online.outputs.recent import SIZE, is_better

Arrays = dict[str, np.ndarray]


def model_bytes(model: Any) -> bytes:
    """A snapshot of the model."""
    kinds: Any = tuple(KINDS.values())
    if not isinstance(model, kinds):
        raise SnapshotError(f"the model {model!r} cannot be saved; learners of this package can, as LASVM()")
    data: bytes = model.to_bytes()
    return data


def model_of(data: bytes, *how: Any) -> Any:
    """The model of a snapshot."""
    found = snapshot.opened(data)
    require(found.kind in KINDS, f"the model is a {found.kind!r}")
    return KINDS[found.kind]._of_snapshot(found, *how)


def dumped(guard: Guard) -> tuple[dict[str, Any], Arrays]:
    """What a guard has learned; probabilities are in the order of `labels`, NaN where a label was not known."""
    labels = list(dict.fromkeys([*guard.classes, *guard.columns]))
    require_plain("label", labels)
    guard.know(labels)
    places = np.array([guard.columns[label] for label in labels], np.int64)
    arrays = _scores_dumped("pool.", guard.pool) | {"recent": guard.recent}
    for k, (c, own) in enumerate(guard.classes.items()):
        arrays |= _scores_dumped(f"{k}.scores.", own.past) | _past_dumped(f"{k}.", own.past, places)
        arrays[f"{k}.left_out"] = np.array(guard.left_out.get(c, []), np.float64)
    tallies = [list(own.tally) for own in guard.classes.values()]
    levels = np.array([own.log_level for own in guard.classes.values()], np.float64)
    meta = {"labels": labels, "n_classes": len(guard.classes), "tallies": tallies, "n": guard.n}
    return meta, arrays | {"levels": levels}


def _scores_dumped(prefix: str, past: Past) -> Arrays:
    ids, columns = past.given()
    count = ~np.isnan(columns[SCORE])
    return {f"{prefix}ids": ids[count], f"{prefix}p": columns[SCORE, count]}


def _past_dumped(prefix: str, past: Past, places: np.ndarray) -> Arrays:
    """Decisions, each with the probabilities of the labels in the columns of these places."""
    ids, columns = past.given()
    alone = columns[ALONE].astype(np.int64)
    return {
        f"{prefix}ids": ids,
        f"{prefix}p": columns[SAID + places].T.copy(),
        f"{prefix}alone": np.where(alone < 0, -1, np.argsort(places)[alone]),
        f"{prefix}own": columns[SCORE],
        f"{prefix}steps": columns[STEP],
    }


def restore(guard: Guard, meta: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
    """Take over what `dumped` gave."""
    labels, n = plain_names(meta, "labels"), snapshot.count(meta, "n_classes")
    require(n <= len(labels), f"{n} classes have {len(labels)} labels")
    tallies = snapshot.field(meta, "tallies", list)
    levels = require_array(arrays, "levels", np.float64, (n,))
    require(np.isfinite(levels).all() and (levels <= guard.highest).all(), "the levels are out of their range")
    guard.n = snapshot.count(meta, "n")
    guard.know(labels)
    pooled = require_array(arrays, "pool.p", np.float64, (None,))
    _take(guard.pool, arrays, "pool.", np.stack([pooled] * SAID))
    guard.recent[:] = require_array(arrays, "recent", np.float64, (SIZE,))
    snapshot.require_finite(arrays, "recent")
    guard.is_better = is_better(guard.recent)
    for k, (label, tally, level) in enumerate(zip(labels[:n], tallies, levels.tolist(), strict=True)):
        require(len(tally) == 3 and all(type(count) is int and count >= 0 for count in tally), f"tally={tally}")
        guard.classes[label] = own = OfClass(guard.alpha, guard.columns)
        _take(own.past, arrays, f"{k}.", _columns(arrays, f"{k}.", len(labels)))
        own.set_level(level)
        own.n, own.n_decided, own.n_wrong = tally
        left_out = require_array(arrays, f"{k}.left_out", np.float64, (None,))
        require(len(left_out) <= WINDOW and (np.diff(left_out, prepend=0.0, append=1.0) >= 0.0).all(), "left_out")
        if len(left_out):
            guard.left_out[label] = left_out.tolist()


def _columns(arrays: Mapping[str, np.ndarray], prefix: str, n_labels: int) -> np.ndarray:
    """The decisions as a table has them."""
    score = require_array(arrays, f"{prefix}own", np.float64, (None,))
    step = require_array(arrays, f"{prefix}steps", np.float64, (len(score),))
    alone = require_array(arrays, f"{prefix}alone", np.int64, (len(score),))
    p = require_array(arrays, f"{prefix}p", np.float64, (len(score), n_labels))
    require(((alone >= -1) & (alone < n_labels)).all(), "a decision is for no label")
    return np.concatenate([[score, score, step, alone], p.T])


def _take(past: Past, arrays: Mapping[str, np.ndarray], prefix: str, columns: np.ndarray) -> None:
    ids = require_array(arrays, f"{prefix}ids", np.int64, (columns.shape[1],))
    score = columns[SCORE]
    are_valid = np.isnan(score) | ((score >= 0.0) & (score <= 1.0))
    require(len(ids) <= WINDOW and are_valid.all(), f"the scores of {prefix} are no probabilities")
    past.take(ids, columns)
