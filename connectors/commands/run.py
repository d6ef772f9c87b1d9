"""The command ``streamsvm run``: the trainer."""

import argparse
import os

from ..settings.loading import load
from ..trainer import trainer
from .shared.long_running import show_states, working
from .shared.options import Subparsers, add_config


def add_parser(subparsers: Subparsers) -> None:
    command = subparsers.add_parser("run", help="consume a topic: predict, learn and write checkpoints")
    command.description = (
        "Run the trainer. It predicts each event, learns each labelled event, and writes checkpoints. After a restart "
        "it continues at its last checkpoint. SIGTERM and Ctrl-C end it."
    )
    add_config(command)
    command.add_argument("--check", action="store_true", help="check the configuration, list every problem and exit")
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    settings = load(arguments.config, os.environ, arguments.set, log_must_exist=True)
    if arguments.check:
        print(f"{arguments.config}: no problems")
        return
    with working(settings) as stop:
        states = trainer.run(settings, stop)
    show_states(settings.log.topic, states)
