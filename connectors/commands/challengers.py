"""The command ``streamsvm challengers``: how the models in the shadow do beside the one that serves."""

import argparse
import os

from ..report.challengers import HEAD, remarks, rows_of
from ..runtime.text import aligned
from ..settings.loading import load
from ..trainer.state.challengers import read_standings, serving_of
from ..trainer.state.stored_state import read_state


def run(arguments: argparse.Namespace) -> None:
    given = arguments.run_of
    is_config = given.suffix == ".toml" and not given.is_dir()
    folder = load(given, os.environ, with_model=False).daemon.state_dir if is_config else given
    for item in read_state(folder):
        standings = read_standings(item.checkpoint.blobs)
        serving, offset = serving_of(item.checkpoint.blobs), item.checkpoint.offsets["events"]
        print(f"{item.name}: {serving!r} serves, at offset {offset:,}")
        if not standings:
            print("there is no [[challenger]]")
        if rows := list(rows_of(standings)):
            print(aligned([HEAD, *rows]))
        for remark in remarks(standings):
            print(remark)
