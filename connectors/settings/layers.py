"""Layers of a configuration: a TOML file, overridden by the environment, overridden by flags.

A dataclass per section says which keys there are.  A field's ``metadata["check"]`` checks a value: it returns None, or
what would be right, or raises ValueError.  Its ``metadata["formerly"]`` is the key's name in an earlier version.
"""

import re
import sys
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from difflib import get_close_matches
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, NamedTuple, get_args, get_origin, get_type_hints

Sections = Mapping[str, Any]  # a dataclass by the section's name

_OF_SERVICE = re.compile(r"_SERVICE_(HOST|PORT(_\w+)?)|_PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?")
_NO_SETTING = "STREAMSVM_KAFKA_CACHE"  # where the tests keep their broker; no Kafka client has such an option
_MISSPELT = 0.7  # likeness to a section's name from which a variable is taken for a setting

_TYPE_NAMES = {
    str: "a string",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    Path: "a folder",
    tuple[str, ...]: "a list of strings",
    dict[str, str]: 'a table of strings, such as { zip = "category" }',
    tuple[str | int, ...]: "a list of strings and whole numbers",
}


def collect(
    sections: Sections,
    path: Path,
    content: Mapping[str, Any],
    environment: Mapping[str, str],
    overrides: Sequence[str],
    verbatim: str,
    removed: Mapping[str, str],
    unchecked: Collection[str] = (),
) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """Values by section and key, converted and checked, and a line for each problem.

    The section `verbatim` may have any keys, because they are another program's.  Its values are `Given`, neither
    converted nor checked; it is missing if no layer mentions it.  `removed` says what to do about each key of an
    earlier version that has no successor, by its dotted name.  Of the `unchecked` sections, values are converted only.
    """
    problems: list[str] = []
    known = [*sections, verbatim]
    values: dict[str, dict[str, Any]] = {name: {} for name in sections}
    if isinstance(content.get(verbatim), dict):
        values[verbatim] = {}
    for given in (
        *_from_file(sections, known, path, content, problems),
        *_from_environment(known, environment, problems),
        *_from_flags(sections, known, overrides, problems),
    ):
        if given.section == verbatim:
            options = values.setdefault(verbatim, {})
            options.pop(given.key, None)  # A later layer comes later in the order, too.
            options[given.key] = given
            continue
        try:
            advice = removed.get(f"{given.section}.{given.key}")
            if advice:
                raise given.unknown(f": {advice}")
            key, value = interpret(sections[given.section], given, is_checked=given.section not in unchecked)
            values[given.section][key] = value
        except ValueError as error:
            problems.append(str(error))
    return values, problems


# --- where values come from -------------------------------------------------------------------------------------------


class Given(NamedTuple):
    """One value of one key, as it was found."""

    section: str
    key: str
    value: Any
    origin: str
    is_text: bool  # It comes from the environment or a flag, where everything is text.

    @property
    def shown(self) -> str:
        """The value for a message, shortened to 60 characters."""
        text = repr(self.value)
        return text if len(text) <= 60 else f"{text[:57]}..."

    def problem(self, what: str) -> ValueError:
        return ValueError(f"{self.origin}: {self.section}.{self.key} = {self.shown} {what}")

    def because(self, error: ValueError) -> ValueError:
        """The problem that an error is about which itself names the key and the value."""
        told = str(error).replace(repr(self.value), self.shown)
        return ValueError(f"{self.origin}: {self.section}.{told}")

    def unknown(self, what: str) -> ValueError:
        """The problem of an unknown key; without the value, which may be a secret in the wrong place."""
        return ValueError(f"{self.origin}: {self.section}.{self.key} is unknown{what}")


class UnreadableFile(ValueError):  # noqa: N818 - names the condition
    """A configuration file that cannot be opened or parsed."""


def read_file(path: Path) -> dict[str, Any]:
    """The sections of a TOML file; an UnreadableFile says what is wrong, and where."""
    try:
        return tomllib.loads(path.read_bytes().decode("utf-8-sig"))
    except OSError as error:
        raise UnreadableFile(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        wrong = f"byte {error.object[error.start]:#04x} at position {error.start}"
        raise UnreadableFile(f"{path}: not UTF-8 text: {wrong} cannot be read") from error
    except ValueError as error:  # A syntax error names its line.
        is_toml = path.suffix.lower() == ".toml"
        wanted = "" if is_toml else "; a configuration is a TOML file, such as `streamsvm init` makes from a table"
        raise UnreadableFile(f"{path}: {error}{wanted}") from error
    except RecursionError as error:
        raise UnreadableFile(f"{path}: lists or tables are nested too deeply") from error


def _from_file(
    sections: Sections, known: Sequence[str], path: Path, content: Mapping[str, Any], problems: list[str]
) -> Iterator[Given]:
    for section, keys in content.items():
        if section in known and isinstance(keys, dict):
            for key, value in keys.items():
                yield Given(section, key, value, str(path), is_text=False)
        elif section in known:
            problems.append(f"{path}: {section} must be one section: write [{section}], and its keys below it")
        elif isinstance(keys, dict):
            problems.append(f"{path}: unknown section [{section}]{_suggest(section, known)}")
        else:
            hint = _section_of(section, sections) or _suggest(section, known)
            problems.append(f"{path}: {section} is in no section{hint}")


def _from_environment(sections: Sequence[str], environment: Mapping[str, str], problems: list[str]) -> Iterator[Given]:
    services = _services(environment)
    for variable, value in sorted(environment.items()):
        prefix, _, rest = variable.partition("_")
        section, _, key = rest.lower().partition("_")
        if prefix != "STREAMSVM" or variable == _NO_SETTING or _is_of_service(variable, value, services):
            continue
        if section in sections:
            yield Given(section, key, value, variable, is_text=True)
        elif key and get_close_matches(section, sections, n=1, cutoff=_MISSPELT):
            problems.append(f"{variable}: unknown section {section!r}{_suggest(section, sections)}")


def _services(environment: Mapping[str, str]) -> set[str]:
    """The Services for which Kubernetes has set variables in this pod, by the first part of the variables' names."""
    host, port = "_SERVICE_HOST", "_SERVICE_PORT"
    names = {variable.removesuffix(host) for variable in environment if variable.endswith(host)}
    return {name for name in names if name + port in environment}


def _is_of_service(variable: str, value: str, services: set[str]) -> bool:
    """Whether a variable tells where a Service is, and is no setting, such as ``STREAMSVM_HTTP_PORT=tcp://10.0.0.1:80``."""
    return any(
        variable.startswith(f"{name}_")
        and (_OF_SERVICE.fullmatch(variable, len(name)) or (variable == f"{name}_PORT" and "://" in value))
        for name in services
    )


def _from_flags(
    sections: Sections, known: Sequence[str], overrides: Sequence[str], problems: list[str]
) -> Iterator[Given]:
    for flag in overrides:
        name, equals, value = flag.partition("=")
        section, dot, key = name.strip().partition(".")
        if equals and dot and section in known:
            yield Given(section, key, value.strip(), "--set", is_text=True)
            continue
        named = flag if not equals and section in known else f"{name}=..." if equals else "..."
        hint = "" if section in known else _section_of(section, sections) or _suggest(section, known)
        problems.append(f"--set {named}: expected section.key=value{hint}")


def _section_of(key: str, sections: Sections) -> str:
    """The hint for a key that was given without its section, or an empty text."""
    named = [f"{name}.{key}" for name, section in sections.items() if key in {item.name for item in fields(section)}]
    return f"; did you mean {' or '.join(named)}?" if named else ""


# --- what values mean -------------------------------------------------------------------------------------------------


def interpret(section: Any, given: Given, *, is_checked: bool) -> tuple[str, Any]:
    """The key and its checked value; raises ValueError with the problem."""
    known = {item.name: item for item in fields(section)}
    key = next((name for name in known if name.lower() == given.key.lower()), given.key) if given.is_text else given.key
    if key not in known:
        new = next((name for name, item in known.items() if item.metadata.get("formerly") == key.lower()), None)
        raise given.unknown(f": it is now called {new!r}" if new else _suggest(key, known))
    hint = get_type_hints(section)[key]
    value = _convert(given, hint)
    check = known[key].metadata.get("check") if is_checked else None
    try:
        wanted = check(value) if check else None
    except ValueError as error:
        raise given._replace(value=value).because(error) from None
    if wanted is not None:
        raise given.problem(f"must be {wanted}")
    return key, value


def _convert(given: Given, hint: Any) -> Any:
    options = get_args(hint) if isinstance(hint, UnionType) else (hint,)
    value = given.value
    if given.is_text and not set(options) <= {str, Path, NoneType}:
        value = parse_text(value)
    for option in options:
        if (
            get_origin(option) is tuple
            and isinstance(value, list)
            and all(type(item) in _items(option) for item in value)
        ):
            return tuple(value)
        if get_origin(option) is dict and isinstance(value, dict) and all(type(v) is str for v in value.values()):
            return value
        if type(value) is option:
            return value
        if option is float and type(value) is int and abs(value) <= sys.float_info.max:
            return float(value)
        if option is Path and type(value) is str and value.strip() and "\0" not in value:
            return Path(value)
    raise given.problem(f"must be {' or '.join(_TYPE_NAMES[option] for option in options if option in _TYPE_NAMES)}")


def _items(option: Any) -> tuple[type, ...]:
    """The types that the items of a list may have."""
    item = get_args(option)[0]
    return get_args(item) or (item,)


def parse_text(text: str) -> Any:
    """Text as TOML reads it; a bare word is a string."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (tomllib.TOMLDecodeError, RecursionError):
        return text


def _suggest(name: str, known: Iterable[str]) -> str:
    close = get_close_matches(name.lower(), [other.lower() for other in known], n=1)
    found = next((other for other in known if close and other.lower() == close[0]), None)
    return f"; did you mean {found!r}?" if found else f"; it must be one of {', '.join(known)}"
