"""The command ``streamsvm warmup``: compile everything ahead of time."""

import argparse

import streamsvm


def add_parser(command: argparse.ArgumentParser) -> None:
    command.description = (
        "Compile all of the engine now, so that the next start of any command takes seconds. Compiling takes up to two "
        "minutes of CPU time, once for each installation and processor."
    )
    command.set_defaults(run=run)


def run(_: argparse.Namespace) -> None:
    print(f"ready after {streamsvm.warmup():.1f} seconds")
