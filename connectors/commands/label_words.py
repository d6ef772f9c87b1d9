"""What the texts of a labelling job are compared by, and which ones are asked about first."""

from collections.abc import Iterable

import numpy as np

from streamsvm.features.embedding import Embedder, named

from ..records.columns import MEANINGS

EMBEDDER = "wordllama"
MOST = 5  # texts: no spam is near to the word, and more wrong answers delay the first right one
EMBEDDED = 20_000  # texts, the first ones: 3 seconds
SHORT = 4  # letters: "news" and "sms" are no plurals
SAY_NOTHING = {*map(str, MEANINGS), "positive", "yes", "y", "other"}  # names of a class


def embedder() -> Embedder | None:
    """The embedder of texts, if it is installed."""
    try:
        return named(EMBEDDER)
    except ImportError:
        return None


def words_of(positive: str | None) -> list[str]:
    """The name of the class that is looked for, and its singular or plural, if it says what to look for."""
    if positive is None or positive.casefold() in SAY_NOTHING:
        return []
    name = positive.replace("_", " ")
    if not name.endswith("s"):
        return [name, f"{name}s"]
    return [name, name[:-1]] if len(name) > SHORT else [name]


def nearest(texts: Iterable[tuple[str, str]], words: str, by: Embedder) -> list[str]:
    """The ids of the texts whose embedding has the smallest angle with that of some words; a text comes with its id."""
    ids, rows = [], []
    for (id_, text), _ in zip(texts, range(EMBEDDED), strict=False):
        ids.append(id_)
        rows.append(by.embed_one(text))
    if not rows:
        return []
    lengths = np.maximum(np.linalg.norm(rows, axis=1), np.finfo(float).tiny)
    near = np.asarray(rows) @ np.asarray(by.embed_one(words)) / lengths
    return [ids[place] for place in np.argsort(-near, kind="stable")[:MOST]]
