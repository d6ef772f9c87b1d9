"""The [kafka] section: the client, its options by their names, and secrets from files.

`logs.kafka` and `logs.rdkafka` know the options.  The one takes half a second to import and the other may not be
installed, so functions import them where they need them.
"""

from collections.abc import Mapping
from difflib import get_close_matches
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

from ..logs.cluster.option_values import Option, meant, shown
from ..logs.cluster.options import DEFAULTS, KafkaOptions
from ..records.codec import MAX_BYTES
from .checks import parse_partitions
from .layers import Given, parse_text
from .sections import Settings

KAFKA_PYTHON, LIBRDKAFKA = _CLIENTS = ("kafka-python", "librdkafka")
LIBRDKAFKA_HINT = "pip install 'streamsvm[librdkafka]'"
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
                content = (folder / str(item.value)).read_text(encoding="utf-8-sig").strip()
            except (OSError, ValueError) as error:
                problems.append(f"{item.origin}: kafka.{item.key} = {item.value!r} cannot be read: {error}")
            item = item._replace(key=key, value=content, is_text=True)
        options[key] = item
    return options


def read_section(given: Mapping[str, Given], settings: Settings) -> tuple[dict[str, Any], list[str]]:
    """The section's values as the clients take them, and a line for each problem."""
    options = {key: item for key, item in given.items() if key != "client"}
    name = given["client"].value if "client" in given else KAFKA_PYTHON
    if name not in _CLIENTS:
        wanted = f"{KAFKA_PYTHON!r} or {LIBRDKAFKA!r}"
        return {}, [f"{given['client'].origin}: kafka.client = {name!r} must be {wanted}"]
    if name == LIBRDKAFKA and not find_spec("confluent_kafka"):
        return {}, [f"kafka.client = {name!r} needs a package that is not installed: {LIBRDKAFKA_HINT}"]
    known, checks = _modules(name)
    values, problems = _interpret(options, name, known)
    problems += checks.contradictions(
        values,
        options,
        is_named=settings.group.instance is not None,
        transactional_by="daemon.exactly_once" if settings.daemon.exactly_once else "",
    )
    largest = {**DEFAULTS, **values}["max_request_size"]
    least = max(settings.limits.dead_letter_bytes, MAX_BYTES) + ENVELOPE_BYTES
    if largest < least:
        problems.append(
            f"kafka.max_request_size = {largest} must be at least {least}: for the largest dead letter "
            "(limits.dead_letter_kb), question and piece of a model"
        )
    if "bootstrap_servers" not in options:
        problems.append("kafka.bootstrap_servers is missing: the address of a broker, such as 'localhost:9092'")
    return ({"client": name, **values} if name == LIBRDKAFKA else values), problems


def uses_librdkafka(settings: Settings) -> bool:
    """Whether librdkafka talks to the brokers."""
    return bool(settings.kafka.get("client") == LIBRDKAFKA)


def _modules(name: str) -> tuple[ModuleType, ModuleType]:
    """What a client's folder says about single options, and about options together."""
    if name == LIBRDKAFKA:
        from ..logs.rdkafka import checks as rd_checks
        from ..logs.rdkafka import options as rd_options

        return rd_options, rd_checks
    from ..logs.kafka import checks, options

    return options, checks


def log_options(settings: Settings) -> KafkaOptions:
    """What a backend of a cluster has to know."""
    return KafkaOptions(
        settings.kafka,
        settings.group.id,
        instance=settings.group.instance,
        assign=tuple(parse_partitions(settings.group.assign)) if settings.group.assign else None,
        is_transactional=settings.daemon.exactly_once,
        transaction_timeout_ms=settings.transaction_timeout_ms,
    )


def _interpret(given: Mapping[str, Given], client: str, known: ModuleType) -> tuple[dict[str, Any], list[str]]:
    """The right values, and a line for each other one."""
    values: dict[str, Any] = {}
    problems: list[str] = []
    for key, item in given.items():
        option: Option | None = known.option_of(key)
        if key in _OURS:
            problems.append(f"{item.origin}: kafka.{key} cannot be set: it is {_OURS[key]}")
        elif key in known.FIXED:
            problems.append(f"{item.origin}: kafka.{key} cannot be set: it is {known.FIXED[key]}")
        elif option is None:
            problems.append(f"{item.origin}: kafka.{key} is no option of {client}{_hint(key, client, known)}")
        elif item.value is None:
            continue  # `with_files` has said that the file cannot be read.
        elif option.takes(value := _value(option, item)):
            values[key] = option.taken(value)
        else:
            choice = meant(key, option, value)
            hint = f"; did you mean {choice!r}?" if choice else ""
            problems.append(f"{item.origin}: kafka.{key} = {shown(key, item.value)} must be {option.wanted}{hint}")
    return values, problems


def _hint(key: str, client: str, known: ModuleType) -> str:
    """What the writer of an unknown option may have meant."""
    python, _ = _modules(KAFKA_PYTHON)
    if find_spec("confluent_kafka"):  # librdkafka itself knows the names of its options.
        from ..logs.rdkafka.options import right_name

        ours = right_name(key)
        if ours and known.option_of(ours):
            return f"; it is called {ours!r} here"
        if client == KAFKA_PYTHON and ours:
            return f"; librdkafka has it: set kafka.client = {LIBRDKAFKA!r}"
    if client == LIBRDKAFKA and python.option_of(key):
        return f"; only {KAFKA_PYTHON} has it"
    close = [name for name in get_close_matches(key, python.OPTIONS) if known.option_of(name)]
    return f"; did you mean {close[0]!r}?" if close else ""


def _value(option: Option, item: Given) -> Any:
    """The value, of a type that the option takes if its text can be; where a string is wanted, a number stays text."""
    if not item.is_text or option.types == (str,):
        return item.value
    value = parse_text(item.value)
    return value if type(value) in option.types else item.value
