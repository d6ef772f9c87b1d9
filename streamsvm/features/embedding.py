"""Embedders: what turns a text into a fixed number of floats, trained elsewhere, and how `Records` uses one.

An embedder that is named, ``"wordllama"`` or ``"package.module:NAME"``, is made once in a process.  A snapshot never
makes Python import something: it finds such a name only if its module has been imported already.
"""

import importlib
import math
import sys
from collections.abc import Callable, Hashable, Sequence
from functools import lru_cache
from typing import Any, Protocol

import numpy as np

from streamsvm.core.inputs import APART
from streamsvm.core.saving import snapshot
from streamsvm.core.scaling.state import CLIP
from streamsvm.features.static_embedding import WordLlama
from streamsvm.features.values import LONGEST_LIST, TEXT

BUILT_IN: dict[str, Callable[[], Any]] = {"wordllama": WordLlama}


class Embedder(Protocol):
    """A model that turns a text into numbers, always the same for the same text.

    Attributes
    ----------
    name
        What it is, with its version.  A snapshot refuses an embedder of another name.
    size
        How many numbers it makes of a text, at most 4096.

    Examples
    --------
    >>> from streamsvm.features import Records
    >>> class Vowels:
    ...     name, size = "vowels 1", 5
    ...
    ...     def embed_one(self, text):
    ...         return [text.count(vowel) for vowel in "aeiou"]
    >>> records = Records(embed={"note": Vowels()})
    >>> records.learn_one({"note": "a kayak"})
    >>> records.transform_one({"note": "a kayak"})["~note:0"]
    3.0
    """

    name: str
    size: int

    def embed_one(self, text: str) -> Sequence[float]:
        """The numbers of a text, which is not blank; all 0 if it knows nothing of the text."""
        ...


class Embedding:
    """The embedder of one field, as it was given: by its name or itself."""

    __slots__ = ("_columns", "_latest", "embedder", "field", "given", "problem")

    def __init__(self, field: Hashable, given: Any) -> None:
        self.field, self.given = field, given
        self.embedder: Embedder = named(given) if isinstance(given, str) else given
        _require_embedder(f"embed[{field!r}]={given!r:.60}", self.embedder)
        self._columns = [f"{APART}{field}:{j}" for j in range(self.embedder.size)]
        self._latest: tuple[str, dict[Hashable, float] | None] = ("", None)
        self.problem = ""  # why the latest text that could not be embedded could not

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies share what is named, and pickles name it."""
        return Embedding, (self.field, self.given)

    def columns(self, text: str) -> dict[Hashable, float] | None:
        """The columns of a text; None if the embedder cannot take it."""
        latest = self._latest  # a record is transformed to predict it, and again to learn it
        if latest[0] != text:
            self._latest = latest = text, self._computed(text)
        return latest[1]

    def _computed(self, text: str) -> dict[Hashable, float] | None:
        try:
            v = np.asarray(self.embedder.embed_one(text), np.float64)
        except Exception as error:  # it is not our code
            self.problem = f"it raised {type(error).__name__}: {error}"
            return None
        if v.shape != (len(self._columns),) or not np.all(np.isfinite(v)):
            self.problem = f"it must give {len(self._columns)} finite numbers, and gave an array of shape {v.shape}"
            return None
        length = math.hypot(*v.tolist())
        return dict(zip(self._columns, (v / length * CLIP).tolist(), strict=True)) if length else {}

    def dumped(self) -> list[Any]:
        """How a snapshot finds the embedder, and what it must be."""
        return [self.given if isinstance(self.given, str) else None, self.embedder.name, self.embedder.size]


@lru_cache(maxsize=64)
def named(name: str) -> Any:
    """What has this name; a class is made an object."""
    if name in BUILT_IN:
        return BUILT_IN[name]()
    module, _, attribute = name.partition(":")
    try:
        found = getattr(importlib.import_module(module), attribute) if attribute else None
        return found() if isinstance(found, type) and hasattr(found, "embed_one") else found
    except ImportError:
        raise  # it says what is missing
    except Exception as error:  # it is not our code
        raise ValueError(f"the embedder {name!r} cannot be made: {type(error).__name__}: {error}") from error


def loaded(field: Hashable, own: Any, given: Any) -> Embedding:
    """What `Embedding.dumped` gave, with the embedder that was given to the reader, or None."""
    snapshot.require(isinstance(own, list) and list(map(type, own[1:])) == [str, int], f"the embedder of {field!r}")
    origin, name, size = own
    if given is None:
        if origin is None or not _is_imported(origin):
            what = f"an embedder of yours, {name!r}" if origin is None else f"{origin!r}, whose module is not imported"
            raise snapshot.SnapshotError(
                f"field {field!r} needs {what}: {'' if origin is None else 'import it first, or '}give it, as in "
                f"Records.load(path, embed={{{field!r}: ...}})"
            )
        given = origin
    try:
        embedding = Embedding(field, given)
    except ImportError as error:
        raise snapshot.SnapshotError(f"field {field!r} was embedded by {name!r}: {error}") from error
    has = embedding.embedder
    if (has.name, has.size) != (name, size):
        raise snapshot.SnapshotError(
            f"field {field!r} was embedded by {name!r} ({size} numbers), and this embedder is {has.name!r} "
            f"({has.size} numbers): a model that learned with one cannot go on with another"
        )
    return embedding


def _is_imported(name: Any) -> bool:
    return name in BUILT_IN or (isinstance(name, str) and name.partition(":")[0] in sys.modules)


def _require_embedder(what: str, found: Any) -> None:
    name, size = getattr(found, "name", None), getattr(found, "size", None)
    is_sized = type(size) is int and 1 <= size <= LONGEST_LIST
    if not isinstance(name, str) or not is_sized or not callable(getattr(found, "embed_one", None)):
        raise TypeError(
            f"{what} is no embedder: it must be 'wordllama', 'package.module:NAME', or an object with a name (a str), "
            f"a size (an int of 1 to {LONGEST_LIST}) and embed_one(text); its name is {name!r:.60}, and its size "
            f"{size!r:.60}"
        )


def embeddings_of(embed: Any, kinds: Any) -> dict[Hashable, Embedding]:
    """The embeddings of these fields; refuse what is none."""
    if embed is not None and not isinstance(embed, dict):
        raise TypeError(f"embed={embed!r:.60} must be a dict of field names and embedders, or None")
    for name in embed or {}:
        if (kinds or {}).get(name, TEXT) != TEXT:
            raise ValueError(f"embed names {name!r}, which is a {kinds[name]} in kinds; an embedder takes a text")
    return {name: Embedding(name, given) for name, given in (embed or {}).items()}
