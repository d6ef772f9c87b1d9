"""The arguments of the commands that work until they are stopped."""

from pathlib import Path

from . import options
from .options import Parser, add_check, add_config, add_device


def run(command: Parser) -> None:
    """Run the trainer. It predicts each event, learns each labelled event, and writes checkpoints. After a restart it
    continues at its last checkpoint. SIGTERM and Ctrl-C end it.
    """
    add_config(command)
    add_check(command)


def score(command: Parser) -> None:
    """Run a scorer. It predicts every event with the newest models on the topic log.model, or with the newest one on
    log.merged (scorer.model), and writes the predictions to log.scores. Several scorers of one group share the
    partitions. SIGTERM and Ctrl-C end it.
    """
    add_config(command)
    add_check(command)
    add_device(command, "where to compute batches of predictions")


def merger(command: Parser) -> None:
    """Run a merger. Every merger.seconds it makes one model of those that the trainers publish on the topic log.model,
    and publishes it on log.merged, for scorers with scorer.model = 'merged'. Of several mergers, one works and the
    others wait. SIGTERM and Ctrl-C end it.
    """
    add_config(command)
    add_check(command)


def label(command: Parser) -> None:
    """Show the events whose labels a trainer asks for. By default the questions are on a page in the browser. Every
    label is written to the topic log.labels before it is acknowledged. SIGTERM and Ctrl-C end the command. In the place
    of the configuration, a table (CSV, JSON lines, Parquet) makes a whole job of it: the folder NAME-labels beside it
    gets a log and a configuration, and the trainer runs as well. So does a folder of images.
    """
    add_config(command)
    command.column("--text", help="with a table: column of the text that annotators read")
    command.column("--image", help="with a table: column of an image's address")
    command.column("--id", help="with a table: column of the id (default: a column named so, or NAME:LINE)")
    command.column("--known", help="with a table: column of labels that are known already; others are blank")
    add_check(command)
    ways = command.add_mutually_exclusive_group()
    ways.add_argument("--terminal", action="store_true", help="ask in this terminal, or read answers from a pipe")
    ways.add_argument("--truth", type=Path, metavar="FILE", help="answer from a CSV or JSON lines file of id and y")
    ways.add_argument("--field", metavar="NAME", help="answer with this field of the events")
    ways.add_argument("--label-studio", metavar="URL", help="ask in a project of Label Studio")
    command.flag("--train", help="also run the trainer, as `streamsvm run` does")
    command.add("--annotator", metavar="NAME", help="with --terminal: name of the annotator (default: the user's)")
    command.flag("--no-browser", help="with the page: do not open a browser")
    command.add(
        "--delay",
        type=options.seconds,
        metavar="SECONDS",
        help="with --truth or --field: time that each answer takes (0)",
    )
    command.add(
        "--noise", type=options.share, metavar="SHARE", help="with --truth or --field: share of wrong answers (0)"
    )
    command.add("--project", type=options.count, metavar="N", help="with --label-studio: number of the project")
    command.file("--token-file", help="with --label-studio: file that holds an access token")
    command.file(
        "--auth-file",
        help="with --label-studio: file that holds USER:PASSWORD, or a token, which Label Studio must send",
    )
