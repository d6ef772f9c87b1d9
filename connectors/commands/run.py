"""The command ``streamsvm run``: the trainer."""

import argparse

from ..settings.sections import Settings
from ..trainer import trainer
from ..trainer.state.challengers import check_settings
from ..trainer.state.checkpoint import load_newest
from ..trainer.state.state import TooManyBadRecords
from ..trainer.state.stored_state import partition_folders
from .shared.configuration import read_config, was_only_checked
from .shared.long_running import show_states, working


def run(arguments: argparse.Namespace) -> None:
    settings = read_config(arguments)
    if arguments.check:
        _check_states(settings)
    if was_only_checked(arguments):
        return
    try:
        with working(settings) as stop:
            states = trainer.run(settings, stop)
    except TooManyBadRecords as error:
        show_states(settings, error.states)
        raise
    show_states(settings, states)


def _check_states(settings: Settings) -> None:
    """Refuse settings that the checkpoints of an earlier run do not have, as the trainer would."""
    for folder in partition_folders(settings.daemon.state_dir):
        if found := load_newest(folder):
            check_settings(found[1], settings, folder)
