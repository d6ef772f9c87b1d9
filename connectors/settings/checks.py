"""Checks of single values: a check returns None for a right value, and otherwise says what would be right."""

import datetime
import math
import re
from collections.abc import Callable
from dataclasses import field
from typing import Any

from ..logs.transport import TOPIC_NAME
from ..records.classes import Vocabulary
from ..runtime.numbers import MAX_INT32

Check = Callable[[Any], str | None]

MAX_CLASSES = 1000  # each class is a model of its own
_MAX_SECONDS = 100 * 365 * 86400.0  # Times in milliseconds stay far inside 64 bits.
_MAX_MB = 1e9  # far inside what 64 bits count
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_WINDOW = 'a number of examples, at least 1, or a time such as "90s", "30m", "12h", "7d" or "2w"'
_IMAGE_HOST = re.compile(r"\*|(https?://)?(\*\.)?[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*(:\d{1,5})?")


def key(default: Any, check: Check, *, formerly: str = "") -> Any:
    """A field of a section: its default, its check, and the name that the key had in an earlier version."""
    return field(default=default, metadata={"check": check, "formerly": formerly})


def _rule(is_right: Callable[[Any], object], wanted: str) -> Check:
    return lambda value: None if is_right(value) else wanted


def _between(low: float, high: float, wanted: str) -> Check:
    return _rule(lambda value: low <= value <= high, wanted)


def parsed(parse: Callable[[Any], object], wanted: str) -> Check:
    """Right is what `parse` takes; it raises ValueError for anything else."""

    def check(value: Any) -> str | None:
        try:
            parse(value)
        except ValueError:
            return wanted
        return None

    return check


def _matching(pattern: str, wanted: str, *, or_empty: bool = True) -> Check:
    return _rule(lambda value: (or_empty and value == "") or re.fullmatch(pattern, value), wanted)


# --- numbers ----------------------------------------------------------------------------------------------------------

positive = _rule(lambda value: 0 < value < math.inf, "a positive number")
not_negative = _rule(lambda value: 0 <= value < math.inf, "a number, at least 0")
fraction = _between(0, 1, "a fraction between 0 and 1")
share = _rule(lambda value: 0 < value < 1, "a share between 0 and 1, without these")
up_to_a_half = _between(0, 0.5, "a number between 0 and 0.5")
seconds = _between(0.001, _MAX_SECONDS, f"a number of seconds from 0.001 to {_MAX_SECONDS:g}")
seconds_or_0 = _between(0, _MAX_SECONDS, f"a number of seconds from 0 to {_MAX_SECONDS:g}")
megabytes = _between(1e-6, _MAX_MB, f"a number of megabytes from 0.000001 to {_MAX_MB:g}")
port = _between(0, 65535, "a port: a number from 0 to 65535")
width = _between(1, 2**20, "a number of columns, at least 1 and at most 2^20")
max_classes = _rule(lambda value: value == 0 or 3 <= value <= MAX_CLASSES, f"0, or from 3 to {MAX_CLASSES}")


def at_least(minimum: float) -> Check:
    """A count or a size that 32-bit counters can hold."""
    return _between(minimum, MAX_INT32, f"at least {minimum}, and at most {MAX_INT32}")


def zero_or_at_least(minimum: int) -> Check:
    """A count, where 0 turns something off."""
    wanted = f"0, or at least {minimum} and at most {MAX_INT32}"
    return _rule(lambda value: value == 0 or minimum <= value <= MAX_INT32, wanted)


# --- texts ------------------------------------------------------------------------------------------------------------

_TOPIC = "1 to 200 letters, digits, '.', '_' or '-'"
topic = _matching(TOPIC_NAME.pattern, _TOPIC, or_empty=False)
optional_topic = _matching(TOPIC_NAME.pattern, _TOPIC)
host = _matching(  # An empty address would mean all addresses of the machine.
    r"[\w.:%-]{1,255}",
    "a name or an address, such as '127.0.0.1'; '0.0.0.0' is every address of this machine",
    or_empty=False,
)
objects_url = _matching(
    r"(s3|gs|az|abfss?)://[^/@\s]+(/[^?#\s]*)?|file:///[^?#\s]+",
    "the URL of an object store without credentials, such as 's3://bucket/prefix'",
)
registry_url = _matching(
    r"https?://[^/@\s?#]+(/[^?#\s]*)?", "an address without credentials, such as 'http://localhost:8081'"
)
function = _matching(r"[\w.]+:\w+", "a function, such as 'package.module:function'")
thousands = _matching(r"[^-+.0-9]", "one sign, such as ','; '.' is the decimal point")
embedders = _rule(
    lambda value: all(re.fullmatch(r"\w+|[\w.]+:\w+", name) for name in value.values()),
    "a table of fields and embedders: 'wordllama' or 'package.module:NAME'",
)
image_hosts = _rule(  # Anything else could end a rule of the Content-Security-Policy and begin another.
    lambda value: all(map(_IMAGE_HOST.fullmatch, value)),
    "names of hosts, such as 'images.example.org', '*.example.org' or 'http://localhost:9000'",
)


def one_of(*choices: str) -> Check:
    return _rule(lambda value: value in choices, f"one of {', '.join(map(repr, choices))}")


def kinds(value: dict[str, str]) -> str | None:
    from streamsvm.features.values import GIVEN  # loads the engine

    return None if set(value.values()) <= {*GIVEN} else f"a table of fields and kinds: {', '.join(map(repr, GIVEN))}"


def classes(value: tuple[str | int, ...]) -> str | None:
    try:
        Vocabulary(value)
    except ValueError as error:
        return f"a list of different classes: one {error}"
    return None if len(value) <= MAX_CLASSES else f"a list of at most {MAX_CLASSES} classes"


def parse_partitions(text: str) -> list[int]:
    """``"0-3,7"`` as numbers; raises ValueError for anything else."""
    numbers: set[int] = set()
    for part in text.split(","):
        found = re.fullmatch(r"\s*(\d{1,6})(?:-(\d{1,6}))?\s*", part, re.ASCII)
        if found is None:
            raise ValueError(f"{part!r} must be a number of up to 6 digits, or a range such as 0-3")
        first, last = int(found[1]), int(found[2] or found[1])
        if last < first:
            raise ValueError(f"{part!r} must rise")
        numbers |= set(range(first, last + 1))
    return sorted(numbers)


partitions = parsed(parse_partitions, 'numbers and ranges such as "0-3,7"')


def parse_window(value: int | str) -> int | datetime.timedelta:
    """How far back a model remembers: a number of examples, or a time; raises ValueError for anything else."""
    if isinstance(value, int) and 1 <= value <= MAX_INT32:
        return value
    found = re.fullmatch(r"([1-9]\d{0,5})([smhdw])", str(value))
    if found is None:
        raise ValueError(f"{value!r} must be {_WINDOW}")
    return datetime.timedelta(**{_UNITS[found[2]]: int(found[1])})


window = parsed(parse_window, _WINDOW)
