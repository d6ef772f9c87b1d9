"""The arguments of the commands that erase records, and that show what records have done to a model."""

from pathlib import Path

from .options import Parser, add_config, offset, topic


def erase(command: Parser) -> None:
    """Find the records of a person in the log, and make every model, estimate, waiting event and question forget them
    at once: the running trainers do so before their next record, and scorers follow. No later run over the log learns
    these records. The log keeps them. Needs log.erasures, a topic of requests.
    """
    add_config(command)
    command.add(
        "--subject",
        required=True,
        action="append",
        metavar="VALUE",
        help="what names the person: an id, a key or a value of a field, see --by; may be given several times",
    )
    command.add(
        "--by",
        default="id",
        metavar="WHERE",
        help="where that stands: id, the id of an event; key, the key of its record; or the dotted name of a field, "
        "such as user.name (.id and .key are fields, too) (default: id)",
    )


def rebuild(command: Parser) -> None:
    """Train the models anew, from the beginning of the log, without the erased records. Then every trainer goes on with
    the rebuilt state, which is bit for bit that of a trainer that never saw them, and the command writes a receipt. It
    may run beside the trainers. Call it again to go on after an interruption.
    """
    add_config(command)
    command.file("--receipt", default=Path("receipt.json"), help="the receipt (default: receipt.json)")
    _add_key(command, "signs the receipt with HMAC-SHA256")


def verify(command: Parser) -> None:
    """Replay the log of a receipt without its erased records, and compare the digests of the state. If they differ, say
    whether the settings, the log or the machine are others. Writes nothing.
    """
    command.file("receipt", "RECEIPT", help="what `streamsvm rebuild` wrote")
    add_config(command)
    _add_key(command, "the signature of the receipt must be that of this key")


def _add_key(command: Parser, what: str) -> None:
    command.file("--key", help=f"a file with a secret of at least 16 bytes: {what} (default: none)")


def bisect(command: Parser) -> None:
    """Find the records of the log that broke the model: train a model along the log, look at held-out events at each
    tenth, and search the tenth that has raised their loss most, by halves. At most 20 short replays. Writes nothing.
    """
    add_config(command)
    command.add(
        "--held-out",
        type=topic,
        required=True,
        metavar="TOPIC",
        help="topic of labelled events that you trust, in the format of the events; `streamsvm produce` writes one",
    )
    command.add(
        "--partition", type=offset, default=0, metavar="N", help="partition of the events to search (default: 0)"
    )
