"""The command line, ``streamsvm COMMAND``: its commands, and how one is called.

Only the command that is called is imported, and with it the engine, which needs a second of CPU time.  So
``streamsvm --version`` and ``streamsvm --help`` answer at once.
"""

import argparse
import re
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import NoReturn

import streamsvm

from .shared.exit_codes import OK

# In the order of `streamsvm --help`: the module of each command, and what it does.  The module has add_parser(command),
# which adds the arguments and sets `run`.
COMMANDS = {
    "demo": ("demos.demo", "learn two real streams, label digits, and draw what was learned"),
    "run": ("run", "consume a topic: predict, learn and write checkpoints"),
    "score": ("score", "predict events with the models that trainers publish"),
    "merger": ("merger", "merge the models of all partitions now and then"),
    "label": ("label", "answer the trainers' questions: on a page, in a terminal, ..."),
    "labels": ("labels", "write the labels given so far to a file"),
    "produce": ("produce", "write the events or the labels of a file into a topic"),
    "topics": ("topics", "show the topics and what is wrong with them, or create them"),
    "lag": ("lag", "show how far trainers and scorers are behind the log"),
    "dlq": ("replays.dlq", "list the records that were refused, or put them back"),
    "replay": ("replays.replay", "train another model over a range of the log"),
    "crossval": ("tuning.crossval", "test a setting on examples that it has not seen"),
    "search": ("tuning.search", "find C and gamma by cross-validation on a grid"),
    "report": ("report", "write a page with pictures of a run, from its state folder"),
    "export": ("export", "write a model as a file that LIBSVM reads"),
    "merge": ("merge", "make one model of several"),
    "doctor": ("doctor.doctor", "look for problems, from Python to the broker"),
    "warmup": ("warmup", "compile ahead of time, for example while an image is built"),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; return its exit code (see `exit_codes`)."""
    given = sys.argv[1:] if argv is None else list(argv)
    named = [word for word in given if not word.startswith("-")][:1]
    try:
        arguments = make_parser(named).parse_args(given)
        from .shared import compilation

        with compilation.telling():
            return arguments.run(arguments) or OK
    except (Exception, KeyboardInterrupt) as error:
        from .shared.errors import told  # It knows the errors of every room, and so loads them all.

        code = told(error)
        if code is None:
            raise
        return code


def make_parser(words: Sequence[str] = tuple(COMMANDS)) -> argparse.ArgumentParser:
    """The parser of ``streamsvm``, with a subparser for each command; those of other words have no arguments."""
    parser = _Parser(prog="streamsvm", description="Online kernel support vector machines for streams.")
    parser.add_argument("--version", action="version", version=f"%(prog)s {streamsvm.__version__}")
    subparsers = parser.add_subparsers(required=True, metavar="COMMAND")
    for word, (module, purpose) in COMMANDS.items():
        command = subparsers.add_parser(word, help=purpose)
        if word in words:
            import_module(f"..{module}", __name__).add_parser(command)
    return parser


class _Parser(argparse.ArgumentParser):
    """Reports wrong arguments without repeating a secret among them, such as that of a ``--set`` without its dashes."""

    def error(self, message: str) -> NoReturn:
        super().error(re.sub(r"((?:password|secret|token|proxy)\w*\s*=\s*)\S+", r"\1...", message, flags=re.IGNORECASE))
