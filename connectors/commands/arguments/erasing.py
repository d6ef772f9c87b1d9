"""The arguments of the commands that erase records, and that show what records have done to a model."""

from pathlib import Path

from .options import Parser, config, offset, topic


def erase(command: Parser) -> None:
    """Find the records of a person in the log, and make every model, estimate, waiting event and question forget them
    at once: the running trainers do so before their next record, and scorers follow. No later run over the log learns
    these records. The log keeps them. Needs log.erasures, a topic of requests.

    --subject VALUE: what names the person: an id, a key or a value of a field, see --by; may be given several times
    --by WHERE: where that stands: id, the id of an event; key, the key of its record; or the dotted name of a field,
        such as user.name (.id and .key are fields, too) (default: id)
    """
    command.take(config)
    command.add("--subject", required=True, action="append")
    command.add("--by", default="id")


def rebuild(command: Parser) -> None:
    """Train the models anew, from the beginning of the log, without the erased records. Then every trainer goes on with
    the rebuilt state, which is bit for bit that of a trainer that never saw them, and the command writes a receipt. It
    may run beside the trainers. Call it again to go on after an interruption.

    --receipt FILE: the receipt (default: receipt.json)
    --key FILE: a file with a secret of at least 16 bytes: signs the receipt with HMAC-SHA256 (default: none)
    """
    command.take(config)
    command.file("--receipt", default=Path("receipt.json"))
    command.file("--key")


def verify(command: Parser) -> None:
    """Replay the log of a receipt without its erased records, and compare the digests of the state. If they differ, say
    whether the settings, the log or the machine are others. Writes nothing.

    receipt RECEIPT: what `streamsvm rebuild` wrote
    --key FILE: a file with a secret of at least 16 bytes: the signature of the receipt must be that of this key
        (default: none)
    """
    command.file("receipt")
    command.take(config)
    command.file("--key")


def bisect(command: Parser) -> None:
    """Find the records of the log that broke the model: train a model along the log, look at held-out events at each
    tenth, and search the tenth that has raised their loss most, by halves. At most 20 short replays. Writes nothing.

    --held-out TOPIC: topic of labelled events that you trust, in the format of the events; `streamsvm produce` writes
        one
    --partition N: partition of the events to search (default: 0)
    """
    command.take(config)
    command.add("--held-out", type=topic, required=True)
    command.add("--partition", type=offset, default=0)
