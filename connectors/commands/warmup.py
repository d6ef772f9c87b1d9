"""The command ``streamsvm warmup``: compile everything ahead of time."""

import argparse

import streamsvm

from .shared.options import Subparsers


def add_parser(subparsers: Subparsers) -> None:
    command = subparsers.add_parser("warmup", help="compile ahead of time, for example while an image is built")
    command.description = (
        "Compile the engine now, so that the next start of any command takes seconds. Compiling takes one to two "
        "minutes, once for each installation."
    )
    command.set_defaults(run=run)


def run(_: argparse.Namespace) -> None:
    print(f"ready after {streamsvm.warmup():.1f} seconds")
