"""The command ``streamsvm run``: the trainer."""

import argparse

from ..trainer import trainer
from ..trainer.state.state import TooManyBadRecords
from .shared.configuration import add_check, add_config, read_config, was_only_checked
from .shared.long_running import show_states, working


def add_parser(command: argparse.ArgumentParser) -> None:
    command.description = (
        "Run the trainer. It predicts each event, learns each labelled event, and writes checkpoints. After a restart "
        "it continues at its last checkpoint. SIGTERM and Ctrl-C end it."
    )
    add_config(command)
    add_check(command)
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    settings = read_config(arguments)
    if was_only_checked(arguments):
        return
    try:
        with working(settings) as stop:
            states = trainer.run(settings, stop)
    except TooManyBadRecords as error:
        show_states(settings.log.topic, error.states)
        raise
    show_states(settings.log.topic, states)
