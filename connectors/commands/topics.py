"""The command ``streamsvm topics``: show the topics and what is wrong with them, or create them."""

import argparse

from ..logs.transport import Shape
from ..runtime.exit_codes import BAD_DATA, OK
from ..runtime.findings import OK as NOTE
from ..runtime.numbers import DAY_MS, HOUR_MS
from ..runtime.text import aligned
from ..settings import topics
from ..settings.sections import Settings
from .shared.configuration import read_config


def run(arguments: argparse.Namespace) -> int:
    settings = read_config(arguments, log_must_exist=False, with_model=False)
    if arguments.create:
        for name in topics.create(settings, arguments.partitions, arguments.replication):
            print(f"made topic {name}")
    return OK if _show(settings) else BAD_DATA


def _show(settings: Settings) -> bool:
    """Print the topics and what is wrong with them; return whether nothing is."""
    names = topics.used(settings)
    found = topics.describe(settings, names)
    header = ("topic", "partitions", "cleanup", "retention", "max.message.bytes")
    print(aligned([header, *(_row(name, found.get(name)) for name in names)]))
    findings = topics.examine(settings, names, found)
    for finding in findings:
        print(f"{'note' if finding.level == NOTE else 'wrong'}: {finding.text}")
    wrong = [finding for finding in findings if finding.level != NOTE]
    for remedy in topics.remedies(wrong):
        print(remedy)
    return not wrong


def _row(name: str, shape: Shape | None) -> tuple[str, ...]:
    if shape is None:
        return name, "-", "missing", "-", "-"
    compacts_only = shape.cleanup == "compact"
    retention = "-" if shape.retention_ms is None or compacts_only else _duration(shape.retention_ms)
    max_bytes = "-" if shape.max_bytes is None else f"{shape.max_bytes:,}"
    return name, f"{shape.n_partitions:,}", shape.cleanup or "-", retention, max_bytes


def _duration(milliseconds: int) -> str:
    if milliseconds < 0:
        return "for ever"
    days, hours = milliseconds / DAY_MS, milliseconds / HOUR_MS
    return f"{days:g} d" if days >= 1 else f"{hours:.3g} h"
