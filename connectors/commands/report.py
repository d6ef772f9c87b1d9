"""The command ``streamsvm report``: a page with pictures of a run."""

import argparse

from ..report import page
from ..runtime.folders import require_folder
from ..runtime.text import plural
from .shared.configuration import state_of


def run(arguments: argparse.Namespace) -> None:
    require_folder(arguments.out)
    settings, folder = state_of(arguments.run_of)
    written, stored = page.write_report(folder, arguments.out, settings)
    n_records = sum(item.checkpoint.offsets["events"] for item in stored)
    print(f"wrote {written}: {plural(len(stored), 'partition')}, {n_records:,} records")
