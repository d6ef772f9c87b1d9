"""The models of a partition: a single one, or one for each record key.

Models by key may be many.  The most recently used ones stay in memory; the others wait in files.  Each checkpoint
writes the models that have changed to a new file.  No file is ever changed, so every checkpoint finds its own versions.
When less than half of a file is in use, its models move to the next file.  It is removed when no checkpoint needs it.

A model whose stored bytes are damaged is set aside, and its key begins with an empty model: the log says so, and the
doctor.  A trainer that starts first tries whether an older checkpoint has all models: see `checkpoint.load_newest`.

The number of models is limited.  At the limit, the model whose last lesson is the oldest is dropped, as if its key had
never come.  Predictions and publications do not count, so the records alone decide which model goes.
"""

import logging
import os
from collections import Counter, OrderedDict, deque
from collections.abc import Iterator, Mapping, Sequence, Set
from hashlib import blake2b
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from streamsvm import SnapshotError
from streamsvm.conformal import ConformalClassifier
from streamsvm.features import Records

from ...records.classes import ClassLabel
from ...records.models import Model, MulticlassModel, Trained
from ...runtime.folders import private
from ...settings.model import ModelSettings
from ...settings.sections import Settings
from .byte_strings import joined
from .model_files import (
    DamagedModel,
    Place,
    is_of_another_version,
    model_files,
    places_of,
    read_place,
    read_whole,
    set_aside,
    unpacked_keys,
)

logger = logging.getLogger(__name__)

Arrays = dict[str, np.ndarray]


class ModelKind(NamedTuple):
    """What kind of models learn.

    Attributes
    ----------
    settings
        The parameters of every model.
    classes
        The classes that a model knows beforehand, if there are more than two; None: two.
    records
        What a model begins with if events are raw; None: they are not.
    error
        The share of each class that may be decided wrongly; 0: nothing is decided.
    audit
        The share of the decided events whose labels come.
    """

    settings: ModelSettings
    classes: Sequence[ClassLabel] | None = None
    records: Records | None = None
    error: float = 0.0
    audit: float = 1.0

    def new(self) -> Any:
        """A model that has learned nothing."""
        if self.classes is None:
            return self.settings.made()
        classes = list(self.classes) or None
        return self.settings.made(lambda learner: MulticlassModel(learner, classes))

    def begun(self, model: Any = None) -> Trained:
        """What goes on learning from here: this model, or a new one."""
        model = self.new() if model is None else model
        decider = ConformalClassifier(model, self.error, self.audit) if self.error else None
        return Trained(model, self.records and self.records.clone(), decider)

    def read(self, blob: bytes) -> Trained:
        """What goes on learning, from the bytes of a `Trained`."""
        is_one = self.classes is None or self.settings.algorithm == "mixture"  # whose kind its bytes tell
        implementation: Any = self.settings.implementation if is_one else MulticlassModel
        return Trained.from_bytes(implementation, blob, self.settings.cache_mb)


def kind_of(settings: Settings, own: ModelSettings) -> ModelKind:
    """The kind of a configuration's models with these parameters."""
    vocabulary = settings.label.vocabulary
    classes = vocabulary.listed if vocabulary else None
    return ModelKind(own, classes, settings.features.records(), settings.decide.error, settings.audit)


class Sizes(NamedTuple):
    """How large the models in memory are together, and how many kernel values they have computed."""

    n_support: int
    n_members: int
    kernel_evaluations: int


NO_MODELS = Sizes(0, 0, 0)


def _sizes_of(model: Model) -> Sizes:
    return Sizes(model.n_support, model.n_members, model.kernel_evaluations)


class SingleModel:
    """One model for all records of a partition; keys say nothing to it.

    Attributes
    ----------
    single
        The model, with what makes its features and what decides with it.
    n_dropped, n_damaged, n_unsaved : int
        As those of `KeyedModels`.
    order : list
        Keys of the models that have learned: there are none.
    """

    n_dropped = n_damaged = n_unsaved = 0
    order: Sequence[bytes] = ()

    def __init__(self, trained: Trained) -> None:
        self.single = trained
        self._has_changed = True

    @property
    def model(self) -> Any:
        return self.single.model

    def trained(self, key: bytes | None = None) -> Trained:
        """The model of a key, with what makes its features and what decides with it."""
        return self.single

    def to_learn(self, key: bytes | None) -> Model:
        """The model of a key, which will change."""
        self._has_changed = True
        return self.model

    def to_observe(self, key: bytes | None) -> Records | None:
        """What makes the features of a model, to learn an event."""
        return self.single.records

    def with_records(self, records: Records | None) -> "SingleModel":
        """The same model for events that these records make features of; None: for rows of features."""
        return SingleModel(self.single._replace(made_by=records))

    def replace(self, model: Any) -> None:
        """Go on with this model."""
        self.single = self.single._replace(model=model)
        self._has_changed = True

    def sizes(self) -> Sizes:
        """The sizes of the models in memory together."""
        return _sizes_of(self.model)

    def digest(self) -> str:
        """What identifies all models."""
        return self.single.digest()

    def changed(self) -> Iterator[tuple[bytes | None, Model]]:
        """The models that have learned since the last call, with their keys."""
        if self._has_changed:
            yield None, self.model
        self._has_changed = False

    def has(self, key: bytes | None) -> bool:
        """Whether there is a model that has learned something of this key."""
        return True

    def drop(self, key: bytes) -> int:
        """Drop the model of a key; return the number of its members."""
        return 0

    def replaced_by(self, others: Any) -> Any:
        """The models to go on with, which say what `others` do."""
        return others

    def withdrawn(self) -> list[bytes]:
        """Keys of the models that were dropped since the last call."""
        return []

    def leave(self, names: Set[str]) -> None:
        """Move the models of these files to the file that the next `save` completes."""

    def leave_all(self) -> None:
        """Move all models to the next file, so that no file has an older version of a model."""

    def remove_old(self) -> None:
        """Remove the files that no kept checkpoint needs, after a checkpoint was written."""

    def close(self) -> None:
        """Close the file; what was not saved is lost."""

    def __len__(self) -> int:
        """Number of models that have learned, in memory or not."""
        return 1


class KeyedModels:
    """One model for each key; records without a key share one.  Its methods are those of `SingleModel`, and more.

    Parameters
    ----------
    kind
        The kind of every model.
    folder
        The folder of the files.
    epoch
        The owner's epoch; it is part of the files' names, so two owners never write the same file.
    max_models
        The largest number of models in memory.
    keep
        Number of checkpoints to keep.
    max_keys
        The largest number of models, in memory or not.
    is_published
        Whether to remember the keys of dropped models until `withdrawn` is called.
    is_owner
        Whether the folder may be changed; if not, a damaged model is an error.

    Attributes
    ----------
    single : None
        There is no single model.
    n_dropped, n_damaged, n_unsaved : int
        Models that were dropped, stored models that were set aside, and models that the next `save` writes.
    """

    single = None

    def __init__(
        self,
        kind: ModelKind,
        folder: Path,
        epoch: int,
        max_models: int,
        keep: int,
        max_keys: int,
        *,
        is_published: bool = False,
        is_owner: bool = True,
    ) -> None:
        self._kind = kind
        self._is_owner = is_owner
        self._folder = folder
        self._epoch = epoch
        self._max_models = max_models
        self._max_keys = max_keys
        self._is_published = is_published
        self.n_dropped = self.n_damaged = 0
        self._order: OrderedDict[bytes, None] = OrderedDict()  # of the last lessons, the oldest first
        self._withdrawn: set[bytes] = set()
        self._live: OrderedDict[bytes, Trained] = OrderedDict()
        self._sizes: dict[bytes, Sizes] = {}  # of the models in memory, when they were last counted
        self._uncounted: set[bytes] = set()  # keys whose models may have other sizes by now
        self._total = NO_MODELS  # of `_sizes`
        self._unsaved: set[bytes] = set()
        self._unpublished: set[bytes] = set()
        self._places: dict[bytes, Place] = {}
        self._n_files = 0  # written by this owner
        self._needed: deque[set[str]] = deque([{path.name for path in folder.glob("models-*")}], maxlen=keep + 1)
        self._file: IO[bytes] | None = None

    def to_observe(self, key: bytes | None) -> Records | None:
        if self._kind.records is None:
            return None
        self._note(key or b"")
        return self.trained(key).records

    def has(self, key: bytes | None) -> bool:
        return (key or b"") in self._order

    def drop(self, key: bytes) -> int:
        if key not in self._order:
            return 0
        n_members = self.trained(key).model.n_members
        del self._order[key]
        self._remove(key)
        return n_members

    def trained(self, key: bytes | None) -> Trained:
        key = key or b""
        found = self._live.get(key)
        if found is None:
            place = self._places.get(key)
            found = self._live[key] = self._kind.begun() if place is None else self._stored(key, place)
            self._evict()
        self._live.move_to_end(key)
        self._uncounted.add(key)
        return found

    def _stored(self, key: bytes, place: Place) -> Trained:
        self._flush()
        try:
            return self._unpacked(key, place)
        except DamagedModel as damage:
            return self._begun_anew(key, place, damage)

    def _unpacked(self, key: bytes, place: Place) -> Trained:
        blob = read_place(self._folder, key, place)
        try:
            return self._kind.read(blob)
        except SnapshotError as error:
            if is_of_another_version(blob):
                raise
            raise place.problem(self._folder, key, error) from None

    def _begun_anew(self, key: bytes, place: Place, damage: DamagedModel) -> Trained:
        """An empty model in the place of one that is damaged; the next `save` writes it."""
        if not self._is_owner:
            raise damage
        logger.error("%s. This key begins with an empty model; %s", damage, set_aside(self._folder, key, place))
        self.n_damaged += 1
        del self._places[key]
        self._unsaved.add(key)
        return self._kind.begun()

    def to_learn(self, key: bytes | None) -> Model:
        self._unpublished.add(key or b"")
        self._note(key or b"")
        return self.trained(key).model

    def _note(self, key: bytes) -> None:
        """Note that a model, or its records, will change."""
        self._unsaved.add(key)
        self._withdrawn.discard(key)
        self._order[key] = None
        self._order.move_to_end(key)
        self._drop_oldest()

    def sizes(self) -> Sizes:
        """The sizes of the models in memory together.  Only models that were used since the last call are counted."""
        gone = [self._sizes.pop(key, NO_MODELS) for key in self._uncounted]
        counted = {key: _sizes_of(self._live[key].model) for key in self._uncounted & self._live.keys()}
        self._sizes |= counted
        pairs = zip(zip(self._total, *counted.values(), strict=True), zip(NO_MODELS, *gone, strict=True), strict=True)
        self._total = Sizes(*(sum(more) - sum(less) for more, less in pairs))
        self._uncounted.clear()
        return self._total

    def changed(self) -> Iterator[tuple[bytes | None, Model]]:
        keys, self._unpublished = self._unpublished, set()
        for key in sorted(keys):
            yield key, self.trained(key).model

    def withdrawn(self) -> list[bytes]:
        keys, self._withdrawn = self._withdrawn, set()
        return sorted(keys)

    def __len__(self) -> int:
        return len(self._order)

    @property
    def order(self) -> list[bytes]:
        """Keys of the models that have learned, by their last lessons."""
        return list(self._order)

    def replaced_by(self, others: Any) -> "KeyedModels":
        """These models, which go on with those of another folder in the place of all that are here."""
        for key in list(self._order):
            del self._order[key]
            self._remove(key)
        for key in others.order:
            self._write(key, others.trained(key).to_bytes())
            self._order[key] = None
        self._unpublished = set(self._order)
        self._withdrawn -= self._unpublished
        self.n_dropped = others.n_dropped
        return self

    def keys(self) -> set[bytes]:
        """Keys of the models that have learned, in memory or not."""
        return set(self._order)

    @property
    def n_unsaved(self) -> int:
        return len(self._unsaved)

    def digest(self) -> str:
        total = blake2b(digest_size=16)
        for key in sorted(self.keys()):
            total.update(key + b"\0" + self.trained(key).digest().encode())
        return total.hexdigest()

    def save(self) -> Arrays:
        """Write the changed models to a file, durably; return the places of all models, for the checkpoint."""
        for key in sorted(self._unsaved & self._live.keys()):
            self._write(key, self._live[key].to_bytes())
        self._unsaved.clear()
        self._empty_sparse_files()
        if self._file is not None:
            self._file.flush()
            os.fsync(self._file.fileno())
            self.close()
        return self._to_arrays()

    def leave_all(self) -> None:
        self.leave({place.file for place in self._places.values()})

    def leave(self, names: Set[str]) -> None:
        leaving = [(key, place) for key, place in self._places.items() if place.file in names] if names else []
        self._flush()
        for key, place in leaving:
            try:
                blob = read_whole(self._folder, key, place)
            except DamagedModel as damage:
                model = self._live[key] if key in self._live else self._begun_anew(key, place, damage)
                blob = model.to_bytes()
            self._write(key, blob)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Go on from a checkpoint's arrays; SnapshotError if they name a file that cannot be."""
        self._places = places_of(arrays)
        keys = list(self._places)
        self._unpublished = {key for key, is_new in zip(keys, arrays["unpublished"].tolist(), strict=True) if is_new}
        self._order = OrderedDict.fromkeys(keys)
        if "n_dropped" in arrays:  # checkpoints of older versions lack it
            self.n_dropped = int(arrays["n_dropped"])
            self._withdrawn = set(unpacked_keys(arrays, "withdrawn", "withdrawn_ends"))
        self._drop_oldest()

    def remove_old(self) -> None:
        self._needed.append({place.file for place in self._places.values()})
        kept = set().union(*self._needed)
        for path in self._folder.glob("models-*"):
            if path.name not in kept and path.name < f"models-{self._epoch + 1:06d}":  # later files are a successor's
                path.unlink(missing_ok=True)

    def _to_arrays(self) -> Arrays:
        keys, withdrawn = list(self._order), sorted(self._withdrawn)
        names = sorted({place.file for place in self._places.values()})
        numbers = {name: number for number, name in enumerate(names)}
        of_keys = [self._places[key] for key in keys]
        places = [(numbers[place.file], place.start, place.length) for place in of_keys]
        return {
            "names": np.frombuffer(" ".join(names).encode(), dtype=np.uint8),
            **_pack("keys", "key_ends", keys),
            **_pack("withdrawn", "withdrawn_ends", withdrawn),
            "n_dropped": np.array(self.n_dropped),
            "places": np.array(places, dtype=np.int64).reshape(-1, len(Place._fields)),
            "unpublished": np.array([key in self._unpublished for key in keys], dtype=bool),
        }

    def _drop_oldest(self) -> None:
        while len(self._order) > self._max_keys:
            key, _ = self._order.popitem(last=False)
            self._remove(key)
            self.n_dropped += 1

    def _remove(self, key: bytes) -> None:
        """Remove the model of a key that has left the order."""
        self._live.pop(key, None)
        self._uncounted.add(key)
        self._places.pop(key, None)
        self._unsaved.discard(key)
        self._unpublished.discard(key)
        if self._is_published:
            self._withdrawn.add(key)

    def _evict(self) -> None:
        while len(self._live) > self._max_models:
            key, model = self._live.popitem(last=False)
            self._uncounted.add(key)
            if key in self._unsaved:
                self._unsaved.discard(key)
                self._write(key, model.to_bytes())

    def _write(self, key: bytes, blob: bytes) -> None:
        if self._file is None:
            self._n_files += 1
            name = f"models-{self._epoch:06d}-{self._n_files:010d}"
            self._file = open(self._folder / name, "wb", opener=private)  # noqa: SIM115 - closed by save()
        self._places[key] = Place(Path(self._file.name).name, self._file.tell(), len(blob))
        self._file.write(blob)

    def _flush(self) -> None:
        """Let what was written to the open file be read."""
        if self._file is not None:
            self._file.flush()

    def _empty_sparse_files(self) -> None:
        used: Counter[str] = Counter()
        for place in self._places.values():
            used[place.file] += place.length
        present = {path.name: path.stat().st_size for path in model_files(self._folder)}
        self.leave({name for name, n_bytes in used.items() if name not in present or n_bytes < present[name] / 2})


def _pack(name: str, ends: str, keys: list[bytes]) -> Arrays:
    """Keys, and where each of them ends."""
    return {name: joined(keys), ends: np.cumsum([len(key) for key in keys], dtype=np.int64)}
