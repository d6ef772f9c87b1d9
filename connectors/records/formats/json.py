"""JSON as an event format, read strictly: no repeated field, no NaN, no half surrogate pair, no deep nesting.

Two parsers share the work.  The strict one, built on the standard library's, defines what is accepted.  The quick one,
built on orjson, is several times faster but more lenient.  Its result counts only where it must equal that of the
strict one.  In all other cases, and to tell people why a record of usual size is refused, the strict parser decides.
"""

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import orjson

from ...logs.transport import Headers
from ...runtime.numbers import MAX_INT64
from .base import BadRecord, Built, Fields, show

MAX_DEPTH = 100  # of objects and lists; deeper nesting may exhaust the interpreter's stack

_LARGE = 1 << 14  # bytes of a record that takes the strict parser long
_BACKSLASH, _BRACKET = b"\\["  # to search bytes for a number is several times faster than for bytes


class JsonFormat:
    """Events as JSON objects; see `codec`."""

    def read(self, value: bytes, headers: Headers, build: Callable[[Fields], Built]) -> Built:
        """As `read_json`; headers are ignored."""
        return read_json(value, build)

    def features(self, value: bytes) -> Any:
        """The field x of an object that was read before."""
        try:
            return orjson.loads(value)["x"]
        except orjson.JSONDecodeError:
            return _strict(value)["x"]


def read_json(value: bytes, build: Callable[[Fields], Built]) -> Built:
    """What `build` makes of the members of a JSON object.

    Parameters
    ----------
    value
        The object, in UTF-8.
    build
        Called with the members.  Below the top level, it must not depend on integers of more than 64 bits.

    Raises
    ------
    BadRecord
        If the bytes are not a JSON object, or if `build` raises it.
    """
    fields = _quick(value)
    if fields is not None:
        try:
            return build(fields)
        except BadRecord:
            if len(value) > _LARGE:
                raise
            # orjson reads large integers as floats, so the strict parser tells better what is wrong
    return build(_strict(value))


# --- quick ------------------------------------------------------------------------------------------------------------


def _quick(value: bytes) -> Fields | None:
    """The members, if the strict parser certainly finds the same; else None."""
    if _BACKSLASH in value and b"u003a" in value.lower():
        return None  # an escaped colon, perhaps
    try:
        fields = orjson.loads(value)
    except orjson.JSONDecodeError:
        return None
    if type(fields) is not dict:
        return None
    n_colons = len(fields)
    for member in fields.values():
        kind = type(member)
        if kind is str:
            n_colons += member.count(":")
        elif kind is dict:
            n_colons += len(member)
        elif kind is float and not -MAX_INT64 <= member <= MAX_INT64:
            return None  # an integer, perhaps
    # The bytes have one colon for each member, and those inside of names and texts.  A repeated name leaves fewer
    # in the result.  So if the result has as many, all names differ.
    expected = value.count(b":")
    is_flat = n_colons == expected
    if not (is_flat and _BRACKET not in value) and not _is_surely_shallow(value):
        return None
    return fields if is_flat or _count_colons(fields) == expected else None


def _count_colons(node: Any) -> int:
    """Number of colons that it takes to write this object, list or text."""
    if type(node) is str:
        return node.count(":")
    below = node
    n_colons = 0
    if type(node) is dict:
        below = node.values()
        n_colons = len(node) + "".join(node).count(":")
    return n_colons + sum([_count_colons(child) for child in below if type(child) in (dict, list, str)])


def _is_surely_shallow(value: bytes) -> bool:
    return value.count(b"{") + value.count(b"[") <= MAX_DEPTH


# --- strict -----------------------------------------------------------------------------------------------------------


def _strict(value: bytes) -> Fields:
    try:
        text = value.decode("utf-8")
        fields = _decode(text)
        if "\\u" in text:
            _encode_strictly(fields)
        is_deep = not _is_surely_shallow(value) and _depth(fields) > MAX_DEPTH
    except UnicodeError as error:
        raise BadRecord("not-utf8", str(error)) from None
    except RecursionError:
        is_deep = True
    except BadRecord:
        raise
    except ValueError as error:
        raise BadRecord("not-json", str(error)) from None
    if is_deep:
        raise BadRecord("not-json", f"objects or lists are nested more than {MAX_DEPTH} deep")
    if type(fields) is not dict:
        raise BadRecord("not-an-object", f"a record must be a JSON object, got {show(fields)}")
    return fields


def _refuse_constant(name: str) -> Any:
    raise BadRecord("not-json", f"{name} is not JSON")


def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The members of an object; BadRecord if a name occurs twice."""
    result = dict(pairs)
    if len(result) != len(pairs):
        ((name, _),) = Counter(name for name, _ in pairs).most_common(1)
        raise BadRecord("duplicate-field", f"{show(name)} appears more than once")
    return result


_decode = json.JSONDecoder(parse_constant=_refuse_constant, object_pairs_hook=unique).decode


def _encode_strictly(fields: Any) -> None:
    """Raise UnicodeError for half a surrogate pair: JSON's escapes allow it, but UTF-8 cannot write it."""
    json.dumps(fields, ensure_ascii=False).encode("utf-8")


def _depth(node: Any) -> int:
    if type(node) is dict:
        return 1 + max(map(_depth, node.values()), default=0)
    return 1 + max(map(_depth, node), default=0) if type(node) is list else 0
