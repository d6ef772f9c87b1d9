"""JSON as an event format, read strictly: no field twice, no NaN, no half characters, no deep nesting.

Two parsers share the work.  The strict one, on the standard library's, defines what is accepted, and as what.  The
quick one, on orjson, is several times faster but more lenient, so its result is used only where it must be the same;
in all other cases, and whenever the result is refused, the strict one has the last word.
"""

import json
from collections.abc import Callable
from typing import Any

import orjson

from ...logs.transport import Headers
from .base import BadRecord, Built, Fields, show

MAX_DEPTH = 100  # of objects and lists; what a parser stands beyond that depends on who calls it

_INT64 = 1 << 63
_BACKSLASH, _BRACKET = b"\\["  # a byte is found in bytes by its number several times faster


class JsonFormat:
    """Events as JSON objects; see `wire`."""

    def read(self, value: bytes, headers: Headers, build: Callable[[Fields], Built]) -> Built:
        """As `read_json`; there is nothing in the headers."""
        return read_json(value, build)

    def features(self, value: bytes) -> Any:
        """The field x of an object that was read before, by whichever parser."""
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
        Called with the members.  It must look only at the top level and at numbers of less than 64 bits below it.

    Raises
    ------
    BadRecord
        If the bytes are no JSON object, or `build` raises it.
    """
    fields = _quick(value)
    if fields is not None:
        try:
            return build(fields)
        except BadRecord:
            pass  # perhaps of orjson's making: it reads large integers as floats
    return build(_strict(value))


# --- quick ------------------------------------------------------------------------------------------------------------


def _quick(value: bytes) -> Fields | None:
    """The members, if they are beyond doubt what the strict parser finds."""
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
        elif kind is float and not -_INT64 < member < _INT64:
            return None  # an integer, perhaps
    # The bytes have one colon per member plus those inside of names and texts, for no other escape stands for a colon.
    # A repeated name leaves fewer in the result; so if as many can be counted there, all names differ.
    expected = value.count(b":")
    is_flat = n_colons == expected
    if not (is_flat and _BRACKET not in value) and not _is_surely_shallow(value):
        return None
    return fields if is_flat or _count_colons(fields) == expected else None


def _count_colons(node: Any) -> int:
    """How many colons it takes to write this object, list or text."""
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


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        names = [name for name, _ in pairs]
        raise BadRecord("duplicate-field", f"{max(names, key=names.count)!r} appears more than once")
    return result


_decode = json.JSONDecoder(parse_constant=_refuse_constant, object_pairs_hook=_object).decode


def _encode_strictly(fields: Any) -> None:
    """Half a surrogate pair is legal in JSON's escapes but is no text: nothing could write it out again."""
    json.dumps(fields, ensure_ascii=False).encode("utf-8")


def _depth(node: Any) -> int:
    if type(node) is dict:
        return 1 + max(map(_depth, node.values()), default=0)
    return 1 + max(map(_depth, node), default=0) if type(node) is list else 0
