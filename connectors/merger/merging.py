"""One published model of several, made on a thread of its own: it may take as long as learning the whole stream."""

import threading
import time
from collections.abc import Mapping
from concurrent.futures import Future
from functools import partial
from typing import Any, NamedTuple

import streamsvm
from streamsvm import WarmupScaler

from ..records.models import Trained, pack_model, unpack_model
from ..records.published import Snapshot
from ..scorer.committee import misfit, total, version_of
from ..settings.sections import Settings

Versions = dict[str, list[int]]  # epoch and version of models, by their names


class Merged(NamedTuple):
    """A model as it is published."""

    blob: bytes
    meta: dict[str, Any]  # the manifest's fields, without the epoch
    n_support: int
    left_out: dict[str, str]  # names of models that do not fit the settings, and why


def versions_of(snapshots: Mapping[str, Snapshot]) -> Versions:
    """Which publications these are, as the manifest of the model made of them says it."""
    return {name: [one.manifest["epoch"], one.manifest["ver"]] for name, one in sorted(snapshots.items())}


def merge(snapshots: Mapping[str, Snapshot], settings: Settings) -> Merged:
    """One model of those that fit the settings, in the order of their partitions.

    Raises
    ------
    ValueError, TypeError
        If one of them is damaged, or if they cannot be merged; the message says why.
    """
    ordered = [snapshots[name] for name in sorted(snapshots, key=lambda name: int(name[1:]))]
    unpacked = {snapshot.name: unpack_model(snapshot.blob) for snapshot in ordered}
    left_out = {name: why for name, served in unpacked.items() if (why := misfit(served, settings))}
    ordered = [snapshot for snapshot in ordered if snapshot.name not in left_out]
    if not ordered:
        raise ValueError("; ".join(f"model {name!r} is left out: {why}" for name, why in left_out.items()))
    served = [unpacked[snapshot.name] for snapshot in ordered]
    pairs = zip(ordered, served, strict=True)
    if scaled := [one.name for one, model in pairs if isinstance(model.made_by, WarmupScaler)]:
        raise ValueError(f"model {scaled[0]!r} has a scaler of its own, as version 0.1.0 wrote it: train it anew")
    models: list[Any] = [each.model for each in served]
    model = streamsvm.merge(models)
    versions = [version_of(snapshot) for snapshot in ordered]
    meta = {
        "ver": total(version.ver for version in versions),
        "offset": total(version.offset for version in versions),
        "created": time.time(),
        "of": versions_of(snapshots),
    }
    return Merged(pack_model(Trained(model)), meta, model.n_support, left_out)


class Work:
    """A merge on a thread of its own; the process may end meanwhile.

    Attributes
    ----------
    of : dict
        The versions of the models that are merged.
    seconds : float
        How long it took, once it is done.
    """

    def __init__(self, snapshots: Mapping[str, Snapshot], settings: Settings) -> None:
        self.of = versions_of(snapshots)
        self.seconds = 0.0
        self._merged: Future[Merged] = Future()
        threading.Thread(target=self._run, args=(dict(snapshots), settings), name="merge", daemon=True).start()

    @property
    def is_done(self) -> bool:
        return self._merged.done()

    def result(self) -> Merged:
        """The model, once this is done; raises what `merge` raised."""
        return self._merged.result(0)

    def _run(self, snapshots: Mapping[str, Snapshot], settings: Settings) -> None:
        begin = time.perf_counter()
        try:
            tell = partial(self._merged.set_result, merge(snapshots, settings))
        except Exception as error:
            tell = partial(self._merged.set_exception, error)
        self.seconds = time.perf_counter() - begin
        tell()
