"""The command ``streamsvm challengers``: how the models in the shadow do beside the one that serves."""

import argparse

from ..report.challengers import ANSWERS_HEAD, HEAD, remarks, rows_of, rows_of_answers
from ..runtime.text import aligned
from ..trainer.state.challengers import read_answers, read_standings, serving_of
from ..trainer.state.stored_state import read_state
from .shared.configuration import state_of


def run(arguments: argparse.Namespace) -> None:
    _, folder = state_of(arguments.run_of)
    for item in read_state(folder):
        standings = read_standings(item.checkpoint.blobs)
        serving, offset = serving_of(item.checkpoint.blobs), item.checkpoint.offsets["events"]
        print(f"{item.name}: {serving!r} serves, at offset {offset:,}")
        if not standings:
            print("there is no [[challenger]]")
        if rows := list(rows_of(standings)):
            print(aligned([HEAD, *rows]))
        if answers := list(rows_of_answers(read_answers(item.checkpoint.blobs))):
            print(aligned([ANSWERS_HEAD, *answers]))
        for remark in remarks(standings, offset):
            print(remark)
