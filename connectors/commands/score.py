"""The command ``streamsvm score``: the scorer."""

import argparse

from ..runtime.text import plural
from ..scorer import scorer
from .shared.configuration import read_config, was_only_checked
from .shared.long_running import working


def run(arguments: argparse.Namespace) -> None:
    settings = read_config(arguments, scorer.NEEDS)
    if was_only_checked(arguments):
        return
    with working(settings) as stop:
        n_predictions = scorer.run(settings, stop, arguments.device)
    print(f"predicted {plural(n_predictions, 'event')} of topic {settings.log.topic!r}")
