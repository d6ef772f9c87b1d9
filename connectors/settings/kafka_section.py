"""The [kafka] section: options of kafka-python's clients by their own names, and secrets from files.

`logs.kafka` knows the options; it takes half a second to import, so functions import it where they need it.
"""

from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..records.codec import MAX_BYTES
from .checks import parse_partitions
from .layers import Given, parse_text
from .sections import Settings

if TYPE_CHECKING:
    from ..logs.kafka.client import KafkaOptions
    from ..logs.kafka.options import Option

_OURS = {  # options that other settings decide
    "group_id": "group.id",
    "group_instance_id": "group.instance",
    "transactional_id": "daemon.exactly_once",
    "enable_auto_commit": "always off",
    "auto_offset_reset": "daemon.start",
}
ENVELOPE_BYTES = 16 << 10  # by which a record may be larger than its value; a dead letter's headers hold its reason


def with_files(given: Mapping[str, Given], folder: Path, problems: list[str]) -> dict[str, Given]:
    """The section with ``KEY_file = FILE`` as KEY with the file's content; None if the file cannot be read."""
    options = {}
    for key, item in given.items():
        if key.endswith("_file"):
            key = key.removesuffix("_file")
            content = None
            try:
                content = (folder / str(item.value)).read_text(encoding="utf-8").strip()
            except (OSError, ValueError) as error:
                problems.append(f"{item.origin}: kafka.{item.key} = {item.value!r} cannot be read: {error}")
            item = item._replace(key=key, value=content, is_text=True)
        options[key] = item
    return options


def read_section(given: Mapping[str, Given], settings: Settings) -> tuple[dict[str, Any], list[str]]:
    """The section's values as the clients take them, and a line for each problem."""
    from ..logs.kafka import checks

    values, problems = _interpret(given)
    problems += checks.contradictions(
        values,
        given,
        is_named=settings.group.instance is not None,
        transactional_by="daemon.exactly_once" if settings.daemon.exactly_once else "",
    )
    largest = checks.largest_request(values)
    least = max(settings.limits.dead_letter_bytes, MAX_BYTES) + ENVELOPE_BYTES
    if largest < least:
        problems.append(
            f"kafka.max_request_size = {largest} must be at least {least}: for the largest dead letter "
            "(limits.dead_letter_kb), question and piece of a model"
        )
    if "bootstrap_servers" not in given:
        problems.append("kafka.bootstrap_servers is missing: the address of a broker, such as 'localhost:9092'")
    return values, problems


def log_options(settings: Settings) -> "KafkaOptions":
    """What `logs.kafka.backend.KafkaBackend` has to know."""
    from ..logs.kafka.client import KafkaOptions

    return KafkaOptions(
        settings.kafka,
        settings.group.id,
        instance=settings.group.instance,
        assign=tuple(parse_partitions(settings.group.assign)) if settings.group.assign else None,
        is_transactional=settings.daemon.exactly_once,
        transaction_timeout_ms=settings.transaction_timeout_ms,
    )


def _interpret(given: Mapping[str, Given]) -> tuple[dict[str, Any], list[str]]:
    """The right values, and a line for each other one."""
    from ..logs.kafka.options import OBJECTS, OPTIONS, as_taken, meant, shown

    values: dict[str, Any] = {}
    problems: list[str] = []
    for key, item in given.items():
        if key in _OURS:
            problems.append(f"{item.origin}: kafka.{key} cannot be set: it is {_OURS[key]}")
        elif key in OBJECTS:
            problems.append(f"{item.origin}: kafka.{key} cannot be set: it is an object of Python")
        elif key not in OPTIONS:
            close = get_close_matches(key, OPTIONS, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            problems.append(f"{item.origin}: kafka.{key} is no option of kafka-python{hint}")
        elif item.value is None:
            continue  # `with_files` has said that the file cannot be read.
        elif OPTIONS[key].takes(value := _value(OPTIONS[key], item)):
            values[key] = as_taken(key, value)
        else:
            choice = meant(key, value)
            hint = f"; did you mean {choice!r}?" if choice else ""
            problems.append(
                f"{item.origin}: kafka.{key} = {shown(key, item.value)} must be {OPTIONS[key].wanted}{hint}"
            )
    return values, problems


def _value(option: "Option", item: Given) -> Any:
    """The value, of a type that the option takes if its text can be; where a string is wanted, a number stays text."""
    if not item.is_text or option.types == (str,):
        return item.value
    value = parse_text(item.value)
    return value if type(value) in option.types else item.value
