"""What the arguments of a command name: a configuration, a state folder, a file."""

import argparse
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ...records.columns import Columns
from ...records.formats.base import show
from ...runtime.folders import FileError
from ...runtime.text import plural
from ...settings.loading import load
from ...settings.sections import ConfigError, Settings, refuse


def read_config(
    arguments: argparse.Namespace,
    needs: Mapping[str, str] = MappingProxyType({}),
    *,
    log_must_exist: bool = True,
    with_model: bool = True,
) -> Settings:
    """The settings that the arguments name, as `load` reads them."""
    given = (arguments.config, os.environ, arguments.set)
    return load(*given, log_must_exist=log_must_exist, with_model=with_model, needs=needs)


def state_of(path: Path) -> tuple[Settings | None, Path]:
    """A configuration's settings, and its state folder; of another path, None and the path as it is."""
    if path.suffix != ".toml" or path.is_dir():
        return None, path
    settings = load(path, os.environ)
    return settings, settings.daemon.state_dir


def misplaced(arguments: argparse.Namespace, homes: Iterable[tuple[str, object, Mapping[str, Any]]]) -> Iterator[str]:
    """A line for each option that was given beside something that it does not go with.

    Parameters
    ----------
    arguments
        The arguments of a command.
    homes
        What some options go with, whether it was given, and the options with their defaults.
    """
    for home, is_given, defaults in homes:
        for name, default in defaults.items():
            if not is_given and getattr(arguments, name) != default:
                yield f"{'--' if len(name) > 1 else '-'}{name.replace('_', '-')} goes with {home} only"


def check_file(arguments: argparse.Namespace) -> None:
    """Raise ConfigError if an option of the file lacks another one, or FileError if the file is a folder."""
    if arguments.file.is_dir():
        raise FileError(f"{arguments.file}: this is a folder; name one of its files")
    if arguments.rest and arguments.positive is None:
        raise ConfigError("--rest goes with --positive, which names the label of the positive class")


def columns_of(arguments: argparse.Namespace, settings: Settings) -> Columns:
    """The columns of a file of events; raises `ConfigError` if options and configuration name different ones.

    If the configuration names a field of raw records, they are flat: they become events as they are.
    """
    features, label = settings.features, settings.label
    named = {name: getattr(features, name) for name in ("id", "label", "time")}
    ruled = {**named, "positive": label.positive} if features.is_flat else {}
    problems = [
        f"--{name} {given}: the configuration decides that, and has {ruled[name] or 'none'!r}; leave the option out"
        for name in ruled
        if (given := getattr(arguments, name)) not in (None, ruled[name])
    ]
    refuse(problems)
    is_raw = arguments.raw or features.raw
    return Columns(
        **{name: named[name] or getattr(arguments, name) for name in named},
        positive=None if features.is_flat else arguments.positive,
        classes=label.vocabulary,
        names=label.meanings,
        rest=arguments.rest,
        raw="flat" if features.is_flat else "event" if is_raw else "",
    )


def tell_unlabelled(columns: Columns) -> None:
    """Say how many labels are missing, because a class may have such a name."""
    n_blank = columns.blanks.total()
    if n_blank:
        texts = ", ".join(map(show, sorted(columns.blanks)[:5]))
        print(f"{plural(n_blank, 'record')} without a label (in its place: {texts})")


def was_only_checked(arguments: argparse.Namespace) -> bool:
    """Whether ``--check`` was given; if so, say that nothing is wrong."""
    if arguments.check:
        print(f"{arguments.config}: no problems")
    return bool(arguments.check)
