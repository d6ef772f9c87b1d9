"""The command line, ``streamsvm COMMAND``: its commands, and how one is called.

What the commands take is in `arguments`, which imports little.  The module that does a command's work is imported when
its arguments are right, and with it, if it needs it, the engine, which takes a second of CPU time.
"""

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import NamedTuple

import streamsvm

from ..runtime.exit_codes import OK
from .arguments import erasing, machine, models, processes, topics, tuning
from .arguments.options import Parser


class Command(NamedTuple):
    """A command of the command line."""

    module: str  # whose `run` does the work
    arguments: Callable[[Parser], None]  # adds them; its docstring describes the command and each of them
    purpose: str


COMMANDS = {  # in the order of `streamsvm --help`
    "demo": Command("demos.demo", machine.demo, "learn three streams, label digits, and draw what was learned"),
    "init": Command("init.init", topics.init, "look at a table or a topic, and write a configuration for it"),
    "run": Command("run", processes.run, "consume a topic: predict, learn and write checkpoints"),
    "score": Command("score", processes.score, "predict events with the models that trainers publish"),
    "merger": Command("merger", processes.merger, "merge the models of all partitions now and then"),
    "label": Command("label", processes.label, "answer the trainers' questions: on a page, in a terminal, ..."),
    "labels": Command("labels", topics.labels, "write the labels given so far to a file"),
    "produce": Command("produce", topics.produce, "write the events or the labels of a file into a topic"),
    "topics": Command("topics", topics.topics, "show the topics and what is wrong with them, or create them"),
    "predictions": Command("predictions", topics.predictions, "write the trainer's predictions to a file"),
    "challengers": Command("challengers", models.challengers, "compare the models in the shadow with the serving one"),
    "promote": Command("promotion", models.promote, "let a challenger serve"),
    "rollback": Command("promotion", models.rollback, "let the model serve that served before"),
    "lag": Command("lag", topics.lag, "show how far trainers and scorers are behind the log"),
    "dlq": Command("replays.dlq", topics.dlq, "list the records that were refused, or put them back"),
    "replay": Command("replays.replay", topics.replay, "train another model over a range of the log"),
    "erase": Command("erasing.erase", erasing.erase, "make every model forget a person's records"),
    "rebuild": Command("erasing.rebuild", erasing.rebuild, "make the models that never saw the erased records"),
    "verify": Command("erasing.verify", erasing.verify, "check a receipt of such a rebuild"),
    "bisect": Command("replays.bisect", erasing.bisect, "find the records that broke the model"),
    "crossval": Command("tuning.crossval", tuning.crossval, "test a setting on examples that it has not seen"),
    "search": Command("tuning.search", tuning.search, "find C and gamma by cross-validation on a grid"),
    "report": Command("report", models.report, "write a page with pictures of a run, from its state folder"),
    "explain": Command("explain", models.explain, "say why a model answers as it does"),
    "export": Command("export", models.export, "write a model for C, Java, JavaScript, ONNX or LIBSVM"),
    "merge": Command("merge", models.merge, "make one model of several"),
    "doctor": Command("doctor.doctor", machine.doctor, "look for problems, from Python to the broker"),
    "warmup": Command("warmup", machine.warmup, "compile ahead of time, for example while an image is built"),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; return its exit code (see `exit_codes`)."""
    arguments = make_parser().parse_args(argv)
    try:
        module = import_module(f"..{arguments.module}", __name__)
        from .shared.compilation import telling

        with telling():
            return module.run(arguments) or OK
    except (Exception, KeyboardInterrupt) as error:
        from .shared.errors import told

        code = told(error)
        if code is None:
            raise
        return code


def make_parser() -> Parser:
    """The parser of ``streamsvm``, with a subparser for each command."""
    parser = Parser(prog="streamsvm", description="Online kernel support vector machines for streams.")
    parser.add_argument("--version", action="version", version=f"%(prog)s {streamsvm.__version__}")
    subparsers = parser.add_subparsers(required=True, metavar="COMMAND")
    for word, (module, arguments, purpose) in COMMANDS.items():
        command = subparsers.add_parser(word, help=purpose)
        command.set_defaults(module=module)
        command.take(arguments)
    return parser
