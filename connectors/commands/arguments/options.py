"""The parser, arguments that several commands share, and converters from an option's text to its value.

A converter raises `argparse.ArgumentTypeError`, which says what would be right.
"""

import argparse
import math
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from textwrap import dedent
from typing import Any, NoReturn

from streamsvm.core.kernel_table import KERNELS

from ...logs.transport import TOPIC_NAME
from ...runtime.moments import read_moment
from ...runtime.numbers import MAX_INT32, MAX_INT64
from ...runtime.text import to_number

FILE_FORMATS = ("auto", "csv", "jsonl", "libsvm", "npz")
DEVICES = ("cpu", "cuda", "auto")
MODELS = ("svm", "ssvm")
MOST_VALUES = 1000  # that a range may have
_ENTRY = re.compile(r"^(\S+?)(?: (\S+))?: (.+(?:\n    .+)*)", re.MULTILINE)  # an argument, its value, and its help
_TOLERANCE = 1e-9  # in steps: rounding must not drop the last value of a range


class Parser(argparse.ArgumentParser):
    """Takes its texts from docstrings, and reports wrong arguments without repeating a secret among them, such as that
    of a ``--set`` without its dashes.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._texts: dict[str, tuple[str, str]] = {}  # what stands for an argument's value, and its help

    def take(self, arguments: Callable[..., None], **options: Any) -> None:
        """Add the arguments of a function; its docstring's second paragraph has the help of each, such as
        ``--topic NAME: what is read``.

        The first paragraph is the parser's description, if it has none yet.
        """
        about, _, entries = (arguments.__doc__ or "").partition("\n\n")
        self.description = self.description or " ".join(about.split())
        texts = {name: (value, " ".join(text.split())) for name, value, text in _ENTRY.findall(dedent(entries))}
        self._texts = texts | self._texts
        arguments(self, **options)

    def add(self, name: str, *, group: Any = None, **options: Any) -> None:
        """Add an argument to this parser, or to a group of its arguments."""
        value, text = self._texts.get(name, ("", None))
        options = {"help": text, **({"metavar": value} if value else {}), **options}
        (group or self).add_argument(name, **options)

    def flag(self, name: str, **options: Any) -> None:
        self.add(name, action="store_true", **options)

    def file(self, name: str, **options: Any) -> None:
        self.add(name, type=Path, **options)

    def error(self, message: str) -> NoReturn:
        super().error(re.sub(r"((?:password|secret|token|proxy)\w*\s*=\s*)\S+", r"\1...", message, flags=re.IGNORECASE))


def config(command: Parser, nargs: str | None = None) -> None:
    """The configuration, and settings that override it.

    config CONFIG.toml: the configuration
    --set SECTION.KEY=VALUE: override a setting; may be given several times
    """
    command.file("config", nargs=nargs)
    command.add("--set", action="append", default=[])


def examples(command: Parser) -> None:
    """A file of examples, and the columns of its labels and ids.

    --format: format of the file (default: by its suffix)
    --label COLUMN: column of the label (CSV, flat JSON lines)
    --id COLUMN: column of the id, which is not a feature (default: NAME:LINE)
    --positive VALUE: label of the positive class; the other one is negative
    --rest: with --positive: all other labels are negative, not only a second one
    """
    command.file("file")
    command.add("--format", choices=FILE_FORMATS, default="auto")
    command.add("--label")
    command.add("--id")
    command.add("--positive")
    command.flag("--rest")


def device(command: Parser, what: str, group: Any = None) -> None:
    """The device of the part of the work that `what` names."""
    text = f"{what}; cuda: on a GPU, with CuPy; auto: on a GPU if there is one and it pays (default: cpu)"
    command.add("--device", group=group, choices=DEVICES, default="cpu", help=text)


# --- values -----------------------------------------------------------------------------------------------------------


def _read(read: Callable[[str], Any], wanted: str) -> Callable[[str], Any]:
    """The converter that reads a value so; where that fails, its error says what is wanted."""

    def convert(text: str) -> Any:
        try:
            return read(text)
        except (ArithmeticError, LookupError, TypeError, ValueError):
            raise argparse.ArgumentTypeError(f"{text!r} must be {wanted}") from None

    return convert


def _within(read: Callable[[str], float], low: float, high: float, wanted: str) -> Callable[[str], Any]:
    """The converter of a finite number from `low` to `high`."""

    def bounded(text: str) -> float:
        value = read(text)
        if not (low <= value <= high and math.isfinite(value)):
            raise ValueError
        return value

    return _read(bounded, wanted)


def _digits(text: str) -> int:
    if not (text.isascii() and text.isdecimal()):
        raise ValueError
    return int(text)


def _whole(low: int, high: int, otherwise: str = "") -> Callable[[str], int]:
    return _within(_digits, low, high, f"{otherwise}a whole number from {low} to {high}")


def _power(text: str) -> float:
    base, caret, exponent = text.partition("^")
    return to_number(base) ** (to_number(exponent) if caret else 1)


count = _whole(1, MAX_INT32)
offset = _whole(0, MAX_INT64)
partitions = _whole(1, 100_000)
replication = _whole(1, 1000)  # a number of brokers
megabytes = _within(to_number, 1e-6, 1e9, "a number of megabytes from 0.000001 to 1e9")
number = _within(to_number, -math.inf, math.inf, "a finite number")
seconds = _within(to_number, 0, 1e9, "a number of seconds, at most 1e9")
share = _within(to_number, 0, 1, "a share from 0 to 1")
positive = _within(_power, math.ulp(0.0), math.inf, "a positive number, such as 0.5 or 2^-5")
topic = _read(lambda text: TOPIC_NAME.fullmatch(text)[0], "1 to 200 letters, digits, '.', '_' or '-'")  # type: ignore[index]
annotator = _read(lambda text: re.fullmatch(r".{1,100}", text)[0], "a name of 1 to 100 characters")  # type: ignore[index]
moment = _read(read_moment, "an offset or a time such as 2026-05-31T12:00")
_some = _within(to_number, 0, 1, "a share between 0 and 1, or a whole number")
_processes = _whole(1, 1000, "-1 or ")


def jobs(text: str) -> int:
    """A number of processes; -1 is one per core."""
    return -1 if text == "-1" else _processes(text)


def names(text: str) -> list[str]:
    """Names between commas, without repetitions."""
    return list(dict.fromkeys(name.strip() for name in text.split(",")))


def test_size(text: str) -> int | float:
    """How many examples are held out: a whole number, or a share."""
    return count(text) if text.isdecimal() else _some(text)


def values(text: str) -> list[float]:
    """Positive numbers: ``0.1,1,10``, or a range ``START:STOP:FACTOR`` with its ends."""
    parts = text.split(":")
    if len(parts) == 1:
        return [positive(part) for part in text.split(",")]
    if len(parts) != 3:
        raise argparse.ArgumentTypeError(f"{text!r} must be a list such as 0.1,1,10 or a range such as 2^-5:2^15:2^2")
    start, stop, factor = map(positive, parts)
    if factor <= 1 or stop < start:
        raise argparse.ArgumentTypeError(f"{text!r} must rise: START:STOP:FACTOR with a factor above 1")
    steps = math.floor((math.log(stop) - math.log(start)) / math.log(factor) + _TOLERANCE)
    if steps >= MOST_VALUES:
        raise argparse.ArgumentTypeError(f"{text!r} has {steps + 1} values; at most {MOST_VALUES} are tried")
    return [start * factor**i for i in range(steps + 1)]


def gamma(text: str) -> float | str:
    """A positive number, or ``scale``."""
    return text if text == "scale" else positive(text)


def setting(text: str) -> dict[str, int | float | str]:
    """Parameters of a model, such as ``C=10,gamma=0.1``."""
    found: dict[str, int | float | str] = {}
    for part in text.split(","):
        name, _, value = (item.strip() for item in part.partition("="))
        if name not in _PARAMETERS:
            known = ", ".join(f"{parameter}=..." for parameter in _PARAMETERS)
            raise argparse.ArgumentTypeError(f"{part!r} must be one of {known}")
        found[name] = _PARAMETERS[name](value)
    return found


def _one_of(known: Iterable[str]) -> Callable[[str], str]:
    return _read({name: name for name in known}.__getitem__, f"one of {', '.join(known)}")


_PARAMETERS: dict[str, Callable[[str], int | float | str]] = {
    "C": positive,
    "gamma": gamma,
    "kernel": _one_of(KERNELS),
    "degree": count,
    "coef0": number,
    "model": _one_of(MODELS),
}
