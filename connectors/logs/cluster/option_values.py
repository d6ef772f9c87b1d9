"""The values that an option of a [kafka] section takes, with either client."""

import re
from collections.abc import Callable
from difflib import get_close_matches
from typing import Any, NamedTuple

from ...runtime.numbers import MAX_INT32
from .security import PROTOCOLS

_SECRET = re.compile(r"password|secret|token|proxy|passphrase|_pem$", re.IGNORECASE)  # A proxy's address may hold one.


class Option(NamedTuple):
    """What an option takes: its types, the same in words, a check of its range, and what the client gets of a value."""

    types: tuple[type, ...]
    wanted: str
    check: Callable[[Any], bool] = lambda value: True
    taken: Callable[[Any], Any] = lambda value: value

    def takes(self, value: Any) -> bool:
        """Whether the value is right; a bool is no number here."""
        return type(value) in self.types and self.check(value)


def is_secret(key: str) -> bool:
    """Whether the value of this option must never be shown."""
    return _SECRET.search(key) is not None


def shown(key: str, value: Any) -> str:
    """An option's value for a message."""
    return "(not shown)" if is_secret(key) or "@" in str(value) else repr(value)  # USER:PASSWORD@HOST


def one_of(*choices: str) -> Option:
    return Option((str,), f"one of {', '.join(map(repr, choices))}", lambda value: value in choices)


def _is_server(text: str) -> bool:
    """HOST:PORT, or [IPV6]:PORT."""
    found = re.fullmatch(r"\s*(\[[0-9A-Fa-f:.%\w]+\]|[^\s:/\[\],]+):(\d{1,5})\s*", text)
    return found is not None and 1 <= int(found[2]) <= 65535


def _are_servers(value: str | list) -> bool:
    servers = value.split(",") if isinstance(value, str) else value
    return bool(servers) and all(isinstance(server, str) and _is_server(server) for server in servers)


def whole_number(least: int, most: int = MAX_INT32) -> Option:
    """An option with a range of whole numbers."""
    return Option((int,), f"a whole number from {least} to {most}", lambda value: least <= value <= most)


COMMON = {  # options that are the same with either client
    "bootstrap_servers": Option(
        (str, list), "HOST:PORT, such as 'localhost:9092', or several; the protocol is security_protocol", _are_servers
    ),
    "isolation_level": one_of("read_committed", "read_uncommitted"),
    "security_protocol": one_of(*PROTOCOLS),
    "acks": Option((int, str), "0, 1, -1 or 'all'", lambda value: value in (0, 1, -1, "all")),
}


def meant(key: str, option: Option, value: Any) -> str | None:
    """The choice that a wrong value may misspell; None if there is none."""
    if key == "bootstrap_servers" or is_secret(key) or not isinstance(value, str):
        return None
    choices = re.findall(r"'([^']+)'", option.wanted)
    close = get_close_matches(value.upper(), [choice.upper() for choice in choices], n=1, cutoff=0.7)
    return next((choice for choice in choices if close and choice.upper() == close[0]), None)
