"""The arguments of the commands that erase records, and that show what records have done to a model."""

import argparse

from .options import add_config


def erase(command: argparse.ArgumentParser) -> None:
    command.description = (
        "Find the records of a person in the log, and make every model, estimate, waiting event and question forget "
        "them at once: the running trainers do so before their next record, and scorers follow. No later run over the "
        "log learns these records. The log keeps them. Needs log.erasures, a topic of requests."
    )
    add_config(command)
    command.add_argument(
        "--subject",
        required=True,
        action="append",
        metavar="VALUE",
        help="what names the person: an id, a key or a value of a field, see --by; may be given several times",
    )
    command.add_argument(
        "--by",
        default="id",
        metavar="WHERE",
        help="where that stands: id, the id of an event; key, the key of its record; or the dotted name of a field, "
        "such as user.name (.id and .key are fields, too) (default: id)",
    )
