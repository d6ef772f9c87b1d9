"""What the demonstrations share: they fill a log at their beginning, and show a report at their end."""

from collections.abc import Iterable
from itertools import islice
from pathlib import Path

from ...logs.embedded import LocalLog
from ...report import page
from ...runtime.libraries import LibraryMissing
from ...settings.sections import Settings


def fill(folder: Path, topic: str, values: Iterable[bytes]) -> None:
    """Append the records that the topic does not have yet."""
    with LocalLog(folder) as log:
        for value in islice(values, log.end_offsets(topic).get(0, 0), None):
            log.produce(topic, value)
        log.flush()


def show_report(settings: Settings, path: Path, what: str) -> None:
    """Write the report about a run, and print how to open it; without matplotlib, print what to install."""
    try:
        page.write_report(settings.daemon.state_dir, path, settings)
    except LibraryMissing as error:
        print(f"report {what}: none ({error})")
    else:
        print(f"report {what}, for your browser: {path.resolve().as_uri()}")
