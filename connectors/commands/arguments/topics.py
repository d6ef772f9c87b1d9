"""The arguments of the commands about records, topics and groups."""

from pathlib import Path

from . import options
from .options import Parser, config


def topics(command: Parser) -> None:
    """Show the topics that the configuration names: their partitions, what Kafka does with old records, and what is
    wrong with them. With --create, create the topics that are missing.

    --create: create the topics that are missing
    --partitions N: with --create: partitions of the events, and of every topic that follows them (default: as many as
        the events have, else 1)
    --replication R: with --create: brokers that keep a copy of each topic (default: the brokers' own setting)
    """
    command.take(config)
    command.flag("--create")
    command.add("--partitions", type=options.partitions)
    command.add("--replication", type=options.replication)


def lag(command: Parser) -> None:
    """Show, for each consumer group and partition, the offset up to which records were consumed, the end of the
    partition, and the lag between them: the records that are still there and were not consumed.

    --json: print JSON, for programs
    """
    command.take(config)
    command.flag("--json")


def dlq(command: Parser) -> None:
    """list: print a line for each dead letter: its offset, the record it is about, why the record was refused, and the
    first bytes. replay: append each record to the topic and partition that it came from, once.

    action: what to do (list)
    --reason: only records that were refused for this reason, such as bad-label
    --from OFFSET: begin at this offset (default: list begins at the first letter, replay at the first that was not put
        back yet)
    --dry-run: with replay: print what would be put back, write nothing
    """
    command.add("action", nargs="?", choices=["list", "replay"], default="list")
    command.take(config)
    command.add("--reason")
    command.add("--from", dest="first", type=options.offset)
    command.flag("--dry-run")


def replay(command: Parser) -> None:
    """Train a new model, called NAME, on the events that the log still has, and on all labels. --set tries other
    settings. The state goes to STATE_DIR-NAME and the outputs go to TOPIC-NAME; the original stays untouched. An
    interrupted replay continues when it is started again. Times are those of the records, in ISO 8601 such as
    2026-05-31T12:00, and in UTC unless they name another zone.

    --app NAME: name of the new model, used in group.id
    --from OFFSET|TIME: first event of each partition (default: earliest)
    --to OFFSET|TIME: event of each partition before which the replay ends (default: the end of the log)
    """
    command.take(config)
    command.add("--app", type=options.topic, required=True)
    command.add("--from", dest="first", type=options.moment)
    command.add("--to", dest="last", type=options.moment)


def init(command: Parser) -> None:
    """Look at all records of a file (CSV, JSON lines or Parquet), or at the first thousand of a topic. Print a table of
    the fields, and write a configuration with comments: which field is the id, which the label and which the time, the
    kind of all others, and what is left out. If it is not clear which field is the label, the command lists those that
    may be, and writes nothing.

    file FILE: the file to look at
    --topic: look at a topic instead; needs --dir or --kafka
    --dir LOG: folder of the embedded log (with a file: log)
    --kafka HOST:PORT: a broker of the Kafka cluster
    --label FIELD: the field of the label (default: a guess by names and values)
    --positive VALUE: the positive label (default: a guess, or the rarer one)
    --id FIELD: the field of the id (default: one whose values all differ)
    --time FIELD: the field of the time (default: one that rises)
    --out FILE: the file to write (default: app.toml)
    --force: replace the file if it exists
    """
    command.file("file", nargs="?")
    command.add("--topic", type=options.topic)
    command.file("--dir")
    for name in ("--kafka", "--label", "--positive", "--id", "--time"):
        command.add(name)
    command.file("--out", default=Path("app.toml"))
    command.flag("--force")


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

    file: the file to read
    --raw: the rows are raw records; see above
    --time COLUMN: column of an event's time, in raw records
    --text COLUMN: column of a text that annotators read; it is a feature in raw records only
    --image COLUMN: column of an image's address that annotators see
    --series COLUMN: column of numbers, as in '1 2 4', drawn as a curve
    --show COLUMNS: other columns that annotators see, as A,B
    --labels: the rows are labels or corrections, not events
    --dir: folder of the embedded log
    --config CONFIG.toml: configuration that names the log
    --topic: topic to write to (default: log.topic or log.labels of the configuration, else 'events' or 'labels')
    --skip N: do not write the first N records, because an earlier try has written them
    """
    command.take(options.examples)
    command.flag("--raw")
    for column in ("--time", "--text", "--image", "--series"):
        command.add(column)
    command.add("--show", type=options.names, default=[])
    command.flag("--labels")
    where = command.add_mutually_exclusive_group(required=True)
    command.file("--dir", group=where)
    command.file("--config", group=where)
    command.add("--topic", type=options.topic)
    command.add("--skip", type=options.offset, default=0)


def predictions(command: Parser) -> None:
    """Read the topic log.predictions to its end, and write a row for each event with its last prediction: the id of
    the event, the predicted label, its probability (score), the margin, and the event's place in the log (src). With
    two classes, the score is the probability of the positive one. If challengers answer a share of the events, the
    column model says which model has answered. With [decide], decided says whether one label is left (in CSV yes or
    no), and labels which ones are, the most probable first.

    --scores: read what scorers predicted instead: log.scores
    --out FILE: the file to write: .csv, .jsonl or .parquet
    """
    command.take(config)
    command.flag("--scores")
    command.file("--out", required=True)


def labels(command: Parser) -> None:
    """Read the topic log.labels to its end, and write the label that holds for each event, one row for each event: the
    newest label, unless it was taken back. A row says who gave the label and when, its revision, and what the model had
    predicted when it asked. With --history, each answer is a row. Labels that came inside the events are not included.
    `streamsvm produce --labels` reads the file, and `streamsvm label --truth` reads CSV and JSON lines.

    --out FILE: the file to write: .csv, .jsonl or .parquet
    --history: write every label, skip, ignore, correction and retraction, in the order of the topic
    """
    command.take(config)
    command.file("--out", required=True)
    command.flag("--history")
