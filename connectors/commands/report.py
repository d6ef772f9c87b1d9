"""The command ``streamsvm report``: a page with pictures of a run."""

import argparse
import os
from pathlib import Path

from ..report.charts import PlotMissing
from ..runtime.folders import require_folder
from ..runtime.text import plural
from ..settings.loading import load
from ..settings.sections import ConfigError


def add_parser(command: argparse.ArgumentParser) -> None:
    command.description = (
        "Write one HTML file that needs no other file and no network. It shows the newest checkpoints; the trainer may "
        "be running. With the configuration instead of the folder, the report also says how far the trainer is behind "
        "its embedded log."
    )
    command.add_argument(
        "run_of",
        type=Path,
        metavar="DIR|CONFIG.toml",
        help="the trainer's state folder (daemon.state_dir), or the configuration",
    )
    command.add_argument("--out", type=Path, metavar="FILE", help="the page to write (default: DIR/report.html)")
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    from ..report import page  # loads river's drift detectors, 0.4 s that no other command needs

    require_folder(arguments.out)
    given = arguments.run_of
    settings = load(given, os.environ) if given.suffix == ".toml" and not given.is_dir() else None
    folder = settings.daemon.state_dir if settings else given
    try:
        written, stored = page.write_report(folder, arguments.out, settings)
    except PlotMissing as error:
        raise ConfigError([str(error)]) from None
    n_records = sum(item.checkpoint.offsets["events"] for item in stored)
    print(f"wrote {written}: {plural(len(stored), 'partition')}, {n_records:,} records")
