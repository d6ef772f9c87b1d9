"""Estimates of the running model's error in a partition, and their history.

When the trainer makes an estimate, and how many support vectors it leaves out, follows from the events alone.  So a
repetition after a restart has the same estimates.  The model does not depend on them.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np
import orjson

from streamsvm.core.saving.snapshot import SnapshotError
from streamsvm.validation import Interval, StreamingKFold, StreamingLOO

from ...records.classes import ClassLabel
from ...records.models import Model
from ...settings.estimates import EstimateSettings

logger = logging.getLogger(__name__)

LOO, FOLDS = "loo", "folds"
_HISTORY_LENGTH = 512  # points of a curve: more than a picture shows


class Estimate(NamedTuple):
    """The estimated quality of the model after `offset` events, from `n` predicted examples.

    `prbep` is NaN with more than two classes.
    """

    kind: str
    offset: int
    n: int
    error: Interval
    g_mean: Interval
    prbep: Interval
    seconds: float

    def encode(self, partition: int) -> bytes:
        """The estimate as the value of a record."""
        fields = {name: v._asdict() if isinstance(v, Interval) else v for name, v in self._asdict().items()}
        return orjson.dumps({"partition": partition, **fields})  # null where a bound is not known


class Estimates:
    """The estimates of one partition's model.

    Parameters
    ----------
    settings
        The kinds of estimates, and the time that they may take.
    model
        The model.
    """

    def __init__(self, settings: EstimateSettings, model: Model) -> None:
        given = asdict(settings)
        folds, has_loo = given.pop(FOLDS), given.pop(LOO)  # the rest says how both are made
        self._makers: dict[str, StreamingLOO | StreamingKFold] = {}
        if has_loo:
            self._makers[LOO] = StreamingLOO(model, **given)
        if folds:
            self._makers[FOLDS] = StreamingKFold(model, folds, **given)
        self._model = model
        self._learning, self._estimating = 0.0, 0.0  # seconds since the start
        self.latest: dict[str, Estimate] = {}
        self.history: list[Estimate] = []

    def learned(
        self,
        xs: Sequence[Mapping[str, float]],
        y: Sequence[ClassLabel],
        w: Sequence[float],
        ids: Sequence[int],
        seconds: float,
        offset: int,
        times: Any = None,
    ) -> list[Estimate]:
        """Note examples that the model has learned, and the seconds this took; return the estimates made now."""
        made = ((kind, maker.learned(xs, y, w, ids, times)) for kind, maker in self._makers.items())
        found = [
            Estimate(kind, offset, new.n, new.error, new.g_mean, new.prbep, new.seconds)
            for kind, new in made
            if new is not None
        ]
        self._learning += seconds
        self._estimating += sum(item.seconds for item in found)
        self.latest |= {item.kind: item for item in found}
        self.history += found
        if len(self.history) > _HISTORY_LENGTH:
            self.history = _thinned(self.history)
        return found

    def forgotten(self, ids: Sequence[int]) -> None:
        """Note that the model has forgotten these examples."""
        for maker in self._makers.values():
            maker.forgotten(ids)

    def corrected(self, number: int, y: ClassLabel) -> None:
        """Note that the model has learned another label for an example."""
        for maker in self._makers.values():
            maker.corrected([number], [y])

    @property
    def share(self) -> float:
        """Time spent on estimates since the start, as a share of the time for learning."""
        return self._estimating / self._learning if self._learning else 0.0

    # --- checkpoints --------------------------------------------------------------------------------------------------

    def to_blobs(self) -> dict[str, bytes]:
        """The remembered examples, by kind of estimate."""
        return {kind: maker.to_bytes() for kind, maker in self._makers.items()}

    def to_arrays(self) -> dict[str, np.ndarray]:
        """The history."""
        rows = [
            (item.kind == FOLDS, item.offset, item.n, *item.error, *item.g_mean, *item.prbep, item.seconds)
            for item in self.history
        ]
        return {"history": np.array(rows, dtype=np.float64).reshape(-1, 13)}

    def restore(self, blobs: Mapping[str, bytes], arrays: Mapping[str, np.ndarray]) -> None:
        """Go on from a checkpoint.  Examples that were remembered under other settings are dropped."""
        for kind, maker in self._makers.items():
            try:
                stored = type(maker).from_bytes(blobs[kind], self._model) if kind in blobs else None
            except SnapshotError as reason:
                logger.warning("estimates (%s) begin anew: %s", kind, reason)
                continue
            if stored is not None and stored._get_params() == maker._get_params():
                self._makers[kind] = stored
            elif stored is not None:
                logger.info("estimates (%s) begin anew: their settings have changed", kind)
        self.history += read_history(arrays)
        self.latest |= {item.kind: item for item in self.history}


def read_history(arrays: Mapping[str, np.ndarray]) -> list[Estimate]:
    """The history that `Estimates.to_arrays` gave; empty if a checkpoint has none."""
    history: list[Estimate] = []
    for is_folds, offset, n, *scores, seconds in arrays["history"].tolist() if arrays else ():
        error, g_mean, prbep = (Interval(*scores[i : i + 3]) for i in (0, 3, 6))
        history.append(Estimate(FOLDS if is_folds else LOO, int(offset), int(n), error, g_mean, prbep, seconds))
    return history


def _thinned(history: list[Estimate]) -> list[Estimate]:
    """Every second estimate of each kind, in order."""
    kept = [item for kind in (LOO, FOLDS) for item in [item for item in history if item.kind == kind][1::2]]
    return sorted(kept, key=lambda item: item.offset)
