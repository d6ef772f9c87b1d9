"""The arguments of the commands about records, topics and groups."""

from pathlib import Path

from . import options
from .options import Parser, add_config, add_out


def topics(command: Parser) -> None:
    """Show the topics that the configuration names: their partitions, what Kafka does with old records, and what is
    wrong with them. With --create, create the topics that are missing.
    """
    add_config(command)
    command.flag("--create", help="create the topics that are missing")
    command.add(
        "--partitions",
        type=options.partitions,
        metavar="N",
        help="with --create: partitions of the events, and of every topic that follows them (default: as many as the "
        "events have, else 1)",
    )
    command.add(
        "--replication",
        type=options.replication,
        metavar="R",
        help="with --create: brokers that keep a copy of each topic (default: the brokers' own setting)",
    )


def lag(command: Parser) -> None:
    """Show, for each consumer group and partition, the offset up to which records were consumed, the end of the
    partition, and the lag between them.
    """
    add_config(command)
    command.flag("--json", help="print JSON, for programs")


def dlq(command: Parser) -> None:
    """list: print a line for each dead letter: its offset, the record it is about, why the record was refused, and the
    first bytes. replay: append each record to the topic and partition that it came from, once.
    """
    command.add("action", nargs="?", choices=["list", "replay"], default="list", help="what to do (list)")
    add_config(command)
    command.add("--reason", help="only records that were refused for this reason, such as bad-label")
    command.add(
        "--from",
        dest="first",
        type=options.offset,
        metavar="OFFSET",
        help="begin at this offset (default: list begins at the first letter, replay at the first that was not put "
        "back yet)",
    )
    command.flag("--dry-run", help="with replay: print what would be put back, write nothing")


def replay(command: Parser) -> None:
    """Train a new model, called NAME, on the events that the log still has, and on all labels. --set tries other
    settings. The state goes to STATE_DIR-NAME and the outputs go to TOPIC-NAME; the original stays untouched. An
    interrupted replay continues when it is started again. Times are those of the records, in ISO 8601 such as
    2026-05-31T12:00, and in UTC unless they name another zone.
    """
    add_config(command)
    command.add(
        "--app", type=options.topic, required=True, metavar="NAME", help="name of the new model, used in group.id"
    )
    command.add(
        "--from",
        dest="first",
        type=options.moment,
        metavar="OFFSET|TIME",
        help="first event of each partition (default: earliest)",
    )
    command.add(
        "--to",
        dest="last",
        type=options.moment,
        metavar="OFFSET|TIME",
        help="event of each partition before which the replay ends (default: the end of the log)",
    )


def init(command: Parser) -> None:
    """Look at all records of a file (CSV, JSON lines or Parquet), or at the first thousand of a topic. Print a table of
    the fields, and write a configuration with comments: which field is the id, which the label and which the time, the
    kind of all others, and what is left out. If it is not clear which field is the label, the command lists those that
    may be, and writes nothing.
    """
    command.file("file", nargs="?", help="the file to look at")
    command.add("--topic", type=options.topic, help="look at a topic instead; needs --dir or --kafka")
    command.file("--dir", "LOG", help="folder of the embedded log (with a file: log)")
    command.add("--kafka", metavar="HOST:PORT", help="a broker of the Kafka cluster")
    command.add("--label", metavar="FIELD", help="the field of the label (default: a guess by names and values)")
    command.add("--positive", metavar="VALUE", help="the positive label (default: a guess, or the rarer one)")
    command.add("--id", metavar="FIELD", help="the field of the id (default: one whose values all differ)")
    command.add("--time", metavar="FIELD", help="the field of the time (default: one that rises)")
    command.file("--out", default=Path("app.toml"), help="the file to write (default: app.toml)")
    command.flag("--force", help="replace the file if it exists")


def produce(command: Parser) -> None:
    """Write each row of a file as an event. The file is CSV with a header, JSON lines (events, or flat objects), LIBSVM
    format, or npz. An npz file holds X and y, or a CSR matrix as data, indices, indptr and y; its other arrays are
    ignored. Without --label, the events of a CSV file or of flat objects have no label, and neither has an event with a
    blank, NaN or null in the label's place. The whole file is checked before the first record is written. With
    --labels, the rows are labels of events that the log has: CSV, JSON lines or Parquet with the columns id and y, such
    as `streamsvm labels` writes. Each label goes to the partition of its event, and replaces the label that the event
    has. With --raw, or if the configuration says [features] raw = true, the rows are raw records of CSV, JSON lines or
    Parquet: texts, blanks, times and nested objects stay as they are, and the trainer makes features of them.
    `streamsvm init` writes such a configuration for a file.
    """
    options.add_file(command, "the file to read")
    command.flag("--raw", help="the rows are raw records; see above")
    command.column("--time", help="column of an event's time, in raw records")
    command.column("--text", help="column of a text that annotators read; it is a feature in raw records only")
    command.column("--image", help="column of an image's address that annotators see")
    command.column("--series", help="column of numbers, as in '1 2 4', drawn as a curve")
    command.add(
        "--show", type=options.names, default=[], metavar="COLUMNS", help="other columns that annotators see, as A,B"
    )
    command.flag("--labels", help="the rows are labels or corrections, not events")
    where = command.add_mutually_exclusive_group(required=True)
    where.add_argument("--dir", type=Path, help="folder of the embedded log")
    where.add_argument("--config", type=Path, metavar="CONFIG.toml", help="configuration that names the log")
    command.add(
        "--topic",
        type=options.topic,
        help="topic to write to (default: log.topic or log.labels of the configuration, else 'events' or 'labels')",
    )
    command.add(
        "--skip",
        type=options.offset,
        default=0,
        metavar="N",
        help="do not write the first N records, because an earlier try has written them",
    )


def predictions(command: Parser) -> None:
    """Read the topic log.predictions to its end, and write a row for each event with its last prediction: the id of
    the event, the predicted label, its probability (score), the margin, and the event's place in the log (src). With
    two classes, the score is the probability of the positive one. If challengers answer a share of the events, the
    column model says which model has answered. With [decide], decided says whether one label is left (in CSV yes or
    no), and labels which ones are, the most probable first.
    """
    add_config(command)
    command.flag("--scores", help="read what scorers predicted instead: log.scores")
    add_out(command, ": .csv, .jsonl or .parquet")


def labels(command: Parser) -> None:
    """Read the topic log.labels to its end, and write the label that holds for each event, one row for each event: the
    newest label, unless it was taken back. A row says who gave the label and when, its revision, and what the model had
    predicted when it asked. With --history, each answer is a row. Labels that came inside the events are not included.
    `streamsvm produce --labels` reads the file, and `streamsvm label --truth` reads CSV and JSON lines.
    """
    add_config(command)
    add_out(command, ": .csv, .jsonl or .parquet")
    command.flag(
        "--history", help="write every label, skip, ignore, correction and retraction, in the order of the topic"
    )
