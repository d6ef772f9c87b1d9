"""The command ``streamsvm merger``: it merges the published models now and then."""

import argparse

from ..merger import merger
from ..runtime.text import plural
from .shared.configuration import add_check, add_config, read_config, was_only_checked
from .shared.long_running import working


def add_parser(command: argparse.ArgumentParser) -> None:
    command.description = (
        "Run a merger. Every merger.seconds it makes one model of those that the trainers publish on the topic "
        "log.model, and publishes it on log.merged, for scorers with scorer.model = 'merged'. Of several mergers, one "
        "works and the others wait. SIGTERM and Ctrl-C end it."
    )
    add_config(command)
    add_check(command)
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    settings = read_config(arguments, merger.needs)
    if was_only_checked(arguments):
        return
    with working(settings) as stop:
        n_models = merger.run(settings, stop)
    print(f"published {plural(n_models, 'merged model')} on topic {settings.log.merged!r}")
