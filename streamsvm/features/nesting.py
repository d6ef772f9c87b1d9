"""Records as they come: rows of tables, and nested objects, whose fields get dotted names."""

from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from river.utils import dataframe

FLAT = frozenset((float, int, str, bool, type(None)))  # types of values that are no nested objects
NAMES = (str, int, float, bool)  # types of names, as of a model's features
DEEPEST = 16  # levels of nested objects


def order_of(name: Hashable) -> tuple[str, str]:
    """Sort key of a field's name."""
    return str(name), type(name).__name__


def outer_names(name: Hashable) -> Iterator[str]:
    """The names of the objects in which a field may be nested."""
    while isinstance(name, str) and "." in name:
        name = name.rpartition(".")[0]
        yield name


def flat(x: Any) -> Mapping[Hashable, Any]:
    """A record without nested objects: their fields get dotted names."""
    if type(x) is not dict and not isinstance(x, Mapping):  # asking for `Mapping` takes longer
        raise TypeError(
            f"a record is {x!r:.100} ({type(x).__name__}); it must be a dict of fields, as row.to_dict() of pandas"
        )
    if FLAT.issuperset(map(type, x.values())):
        return x
    leaves: dict[Hashable, Any] = {}
    _gather(x, "", DEEPEST, leaves)
    return leaves


def _gather(x: Mapping, prefix: str, depth: int, leaves: dict[Hashable, Any]) -> None:
    for own, v in x.items():
        name = f"{prefix}{own}" if prefix else own
        if type(v) not in FLAT:
            if isinstance(v, Mapping) and depth:
                _gather(v, f"{name}.", depth - 1, leaves)
                continue
            v = None if v is np.ma.masked else v[()] if isinstance(v, np.ndarray) and v.ndim == 0 else v
        if name in leaves:
            raise ValueError(
                f"two fields of the record are named {name!r}, with nested names joined by dots; rename one"
            )
        leaves[name] = v


def rows_of(X: Any) -> Iterable[Mapping[Hashable, Any]]:
    if isinstance(X, list | tuple):
        return X
    try:
        rows: Any = dataframe.into_frame(X).iter_rows(named=True)
    except TypeError as e:
        raise TypeError(f"X is a {type(X).__name__}; it must be a data frame or a list of dicts") from e
    return rows


def wrong_name(name: Any) -> TypeError:
    if name is None:
        return TypeError(
            "a field is named None, as csv.DictReader does if a row has more cells than the header; repair the row"
        )
    return TypeError(f"a field is named {name!r} ({type(name).__name__}); a name is a str, an int, a float or a bool")
