"""The command ``streamsvm merger``: it merges the published models now and then."""

import argparse

from ..merger import merger
from ..runtime.text import plural
from .shared.configuration import read_config, was_only_checked
from .shared.long_running import working


def run(arguments: argparse.Namespace) -> None:
    settings = read_config(arguments, merger.NEEDS)
    if was_only_checked(arguments):
        return
    with working(settings) as stop:
        n_models = merger.run(settings, stop)
    print(f"published {plural(n_models, 'merged model')} on topic {settings.log.merged!r}")
