"""The command ``streamsvm report``: a page with pictures of a run."""

import argparse
import os

from ..report import page
from ..report.charts import PlotMissing
from ..runtime.folders import require_folder
from ..runtime.text import plural
from ..settings.loading import load
from ..settings.sections import ConfigError


def run(arguments: argparse.Namespace) -> None:
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
