"""The command ``streamsvm run``: the trainer."""

import argparse

from ..trainer import trainer
from ..trainer.state.state import TooManyBadRecords
from .shared.configuration import read_config, was_only_checked
from .shared.long_running import show_states, working


def run(arguments: argparse.Namespace) -> None:
    settings = read_config(arguments)
    if was_only_checked(arguments):
        return
    try:
        with working(settings) as stop:
            states = trainer.run(settings, stop)
    except TooManyBadRecords as error:
        show_states(settings, error.states)
        raise
    show_states(settings, states)
