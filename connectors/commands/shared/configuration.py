"""The configuration of a command: its arguments, and reading it."""

import argparse
import os
from collections.abc import Callable, Iterable
from pathlib import Path

from ...settings.loading import load, nothing
from ...settings.sections import Settings


def add_config(command: argparse.ArgumentParser, nargs: str | None = None) -> None:
    """Add the configuration file and ``--set``."""
    command.add_argument("config", type=Path, metavar="CONFIG.toml", nargs=nargs, help="the configuration")
    command.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="SECTION.KEY=VALUE",
        help="override a setting; may be given several times",
    )


def add_check(command: argparse.ArgumentParser) -> None:
    """Add ``--check``."""
    command.add_argument("--check", action="store_true", help="check the configuration, list every problem and exit")


def read_config(
    arguments: argparse.Namespace,
    needs: Callable[[Settings], Iterable[str]] = nothing,
    *,
    log_must_exist: bool = True,
) -> Settings:
    """The settings that the arguments name; `needs` has a line for each one that this command misses."""
    return load(arguments.config, os.environ, arguments.set, log_must_exist=log_must_exist, needs=needs)


def state_folder(path: Path) -> Path:
    """The state folder of a configuration; another path as it is."""
    is_config = path.suffix == ".toml" and not path.is_dir()
    return load(path, os.environ).daemon.state_dir if is_config else path


def was_only_checked(arguments: argparse.Namespace) -> bool:
    """Whether ``--check`` was given; if so, say that nothing is wrong."""
    if arguments.check:
        print(f"{arguments.config}: no problems")
    return bool(arguments.check)
