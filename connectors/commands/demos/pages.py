"""What the demonstrations share: they fill a log at their beginning, and show a report at their end."""

from pathlib import Path

from ...report import page
from ...runtime.libraries import LibraryMissing
from ...settings.sections import Settings


def show_report(settings: Settings, path: Path, what: str) -> None:
    """Write the report about a run, and print how to open it; without matplotlib, print what to install."""
    try:
        page.write_report(settings.daemon.state_dir, path, settings)
    except LibraryMissing as error:
        print(f"report {what}: none ({error})")
    else:
        print(f"report {what}, for your browser: {path.resolve().as_uri()}")
