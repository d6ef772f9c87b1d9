"""The arguments of the commands that work until they are stopped."""

from . import options
from .options import Parser, config, device


def run(command: Parser) -> None:
    """Run the trainer. It predicts each event, learns each labelled event, and writes checkpoints. After a restart it
    continues at its last checkpoint. SIGTERM and Ctrl-C end it.
    """
    command.take(_checked)


def score(command: Parser) -> None:
    """Run a scorer. It predicts every event with the newest models on the topic log.model, or with the newest one on
    log.merged (scorer.model), and writes the predictions to log.scores. Several scorers of one group share the
    partitions. SIGTERM and Ctrl-C end it.
    """
    command.take(_checked)
    device(command, "where to compute batches of predictions")


def merger(command: Parser) -> None:
    """Run a merger. Every merger.seconds it makes one model of those that the trainers publish on the topic log.model,
    and publishes it on log.merged, for scorers with scorer.model = 'merged'. Of several mergers, one works and the
    others wait. SIGTERM and Ctrl-C end it.
    """
    command.take(_checked)


def _checked(command: Parser) -> None:
    """The configuration, which may only be checked.

    --check: check the configuration, list every problem and exit
    """
    command.take(config)
    command.flag("--check")


def label(command: Parser) -> None:
    """Show the events whose labels a trainer asks for. By default the questions are on a page in the browser. Every
    label is written to the topic log.labels before it is acknowledged. SIGTERM and Ctrl-C end the command. In the place
    of the configuration, a table (CSV, JSON lines, Parquet) makes a whole job of it: the folder NAME-labels beside it
    gets a log and a configuration, and the trainer runs as well. So does a folder of images.

    --text COLUMN: with a table: column of the text that annotators read
    --image COLUMN: with a table: column of an image's address
    --id COLUMN: with a table: column of the id (default: a column named so, or NAME:LINE)
    --known COLUMN: with a table: column of labels that are known already; others are blank
    --terminal: ask in this terminal, or read answers from a pipe
    --truth FILE: answer from a CSV or JSON lines file of id and y
    --field NAME: answer with this field of the events
    --label-studio URL: ask in a project of Label Studio
    --train: also run the trainer, as `streamsvm run` does
    --annotator NAME: with --terminal: name of the annotator (default: the user's)
    --no-browser: with the page: do not open a browser
    --delay SECONDS: with --truth or --field: time that each answer takes (0)
    --noise SHARE: with --truth or --field: share of wrong answers (0)
    --project N: with --label-studio: number of the project
    --token-file FILE: with --label-studio: file that holds an access token
    --auth-file FILE: with --label-studio: file that holds USER:PASSWORD, or a token, which Label Studio must send
    """
    command.take(_checked)
    for column in ("--text", "--image", "--id", "--known"):
        command.add(column)
    ways = command.add_mutually_exclusive_group()
    command.flag("--terminal", group=ways)
    command.file("--truth", group=ways)
    command.add("--field", group=ways)
    command.add("--label-studio", group=ways)
    command.flag("--train")
    command.add("--annotator", type=options.annotator)
    command.flag("--no-browser")
    command.add("--delay", type=options.seconds)
    command.add("--noise", type=options.share)
    command.add("--project", type=options.count)
    command.file("--token-file")
    command.file("--auth-file")
