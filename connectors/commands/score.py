"""The command ``streamsvm score``: the scorer."""

import argparse

from ..runtime.text import plural
from ..scorer import scorer
from .shared.configuration import add_check, add_config, read_config, was_only_checked
from .shared.long_running import working
from .shared.options import add_device


def add_parser(command: argparse.ArgumentParser) -> None:
    command.description = (
        "Run a scorer. It predicts every event with the newest models on the topic log.model, or with the newest one "
        "on log.merged (scorer.model), and writes the "
        "predictions to log.scores. Several scorers of one group share the partitions. SIGTERM and Ctrl-C end it."
    )
    add_config(command)
    add_check(command)
    add_device(command, "where to compute batches of predictions")
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    settings = read_config(arguments, scorer.needs)
    if was_only_checked(arguments):
        return
    with working(settings) as stop:
        n_predictions = scorer.run(settings, stop, arguments.device)
    print(f"predicted {plural(n_predictions, 'event')} of topic {settings.log.topic!r}")
