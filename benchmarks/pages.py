"""Runs the commands whose output the pages show, and puts what they print in place of what they printed before.

    python benchmarks/pages.py --data DIR                    # every marked place: hours
    python benchmarks/pages.py --data DIR --only ordinary.py "mnist.py --parts delta"
    python benchmarks/pages.py --list                        # the marked places, and when they were printed

The pages are README.md and the Markdown of docs/ and benchmarks/.  They mark a place by comments, and may fence the
lines between them.  A title behind the command stands for the part of the output below that heading:

    <!-- printed by: mnist.py --parts delta -->
    <!-- end -->
    <!-- printed by: folds.py > a grid -->
    <!-- end -->

A command runs once for all of its places, from the root of the repository.  The second comment then says when and at
which commit it ran, its CPU seconds, and how many cores other programs kept busy meanwhile.  The table of all of that
is where a page says `printed by: pages.py`.  Then evidence.py renews the figures of evidence.md.
"""

import argparse
import os
import re
import resource
import shlex
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import NamedTuple

import evidence
from shared.elsewhere import limited
from shared.tables import table

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "benchmarks").rglob("*.md"))]
PLACE = re.compile(r"<!-- printed by: ([^>]+?)(?: > ([^>]+?))? -->\n(.*?)<!-- end(?:: ([^>]*?))? -->", re.DOTALL)
FENCE = "```\n"
ITSELF = "pages.py"
NO_LOAD = "not measured"


class Place(NamedTuple):
    """A marked place of a page."""

    page: Path
    command: str
    title: str  # of a part of the output; empty: all of it
    note: str  # about the run that printed what is there

    @property
    def name(self) -> str:
        """The command, and the title of the part."""
        return f"{self.command} > {self.title}" if self.title else self.command


def places() -> list[Place]:
    """All marked places."""
    found = [(page, mark) for page in PAGES for mark in PLACE.findall(page.read_text(encoding="utf-8"))]
    return [Place(page, command, title, note) for page, (command, title, _, note) in found]


def fill(page: Path, command: str, output: Callable[[str], str], note: str) -> None:
    """Write the parts of a command's output into its places on a page."""

    def place(found: re.Match[str]) -> str:
        there, title, old, _ = found.groups(default="")
        if there != command:
            return found[0]
        name = f"{command} > {title}" if title else command
        text = output(title)
        text = FENCE + text + FENCE if old.startswith(FENCE) else f"\n{text}\n"
        return f"<!-- printed by: {name} -->\n{text}<!-- end{note and f': {note}'} -->"

    page.write_text(PLACE.sub(place, page.read_text(encoding="utf-8")), encoding="utf-8")


# ----------------------------------------------------------------------------------------------------------------- runs


def run(command: str, folder: Path | None) -> tuple[str, str]:
    """What a command prints, from a process with one thread, and a note about the run."""
    script, *rest = shlex.split(command)
    data = ["--data", str(folder)] if folder else []
    words = [sys.executable, str(ROOT / "benchmarks" / script), *data, *rest]
    begin, busy, own = time.perf_counter(), busy_seconds(), seconds_of_children()
    done = subprocess.run(words, env=limited(), stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT)
    own, wall = seconds_of_children() - own, time.perf_counter() - begin
    others = f"{max(0.0, busy_seconds() - busy - own) / wall:.1f} cores" if busy else NO_LOAD
    return done.stdout.strip() + "\n", f"{date.today()}, {commit()}, {own:.0f} CPU s, other programs {others}"


def part(output: str, title: str) -> str:
    """What stands below a heading; all of the output if there is no title."""
    if not title:
        return output
    found = re.search(rf"^#+ {re.escape(title)}\n(.*?)(?=^#|\Z)", output, re.DOTALL | re.MULTILINE)
    if found is None:
        raise SystemExit(f"the output has no heading {title!r}; the page is as it was")
    return found[1].strip() + "\n"


def seconds_of_children() -> float:
    """CPU seconds of the commands that have run."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def busy_seconds() -> float:
    """CPU seconds of all programs since the machine started; 0 where the system does not say (no Linux)."""
    try:
        _, user, nice, system, *_ = Path("/proc/stat").read_text().splitlines()[0].split()
    except OSError:
        return 0.0
    return (int(user) + int(nice) + int(system)) / os.sysconf("SC_CLK_TCK")


def commit() -> str:
    """The commit that runs, with a plus if programs differ from it."""

    def said(*words: str) -> str:
        command = ["git", *words]
        return subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()

    changed = said("status", "--porcelain", "--", "streamsvm", "benchmarks/*.py")
    return said("rev-parse", "--short=7", "HEAD") + ("+" if changed else "")


def renew(command: str, folder: Path | None) -> str:
    """Run a command, fill its places, and say how long it took."""
    output, note = run(command, folder)
    for page in {place.page for place in places() if place.command == command}:
        fill(page, command, lambda title: part(output, title), note)
    return note


# ---------------------------------------------------------------------------------------------------------------- notes


def overview() -> str:
    """The table of all commands, the pages that show what they printed, and when."""
    notes: dict[str, tuple[list[str], str]] = {}
    for place in places():
        if place.command != ITSELF:
            pages, _ = notes.setdefault(place.command, ([], place.note))
            if (page := f"{place.page.relative_to(ROOT)}") not in pages:
                pages.append(page)
    rows = []
    for command, (pages, note) in sorted(notes.items()):
        day, at, seconds, others = [*note.split(", "), "", "", ""][:4]
        cells = [day, at, seconds.removesuffix(" CPU s"), others.removeprefix("other programs ")]
        rows.append([f"`{command}`", ", ".join(pages), *cells])
    return table("command|page|day|commit|CPU s|other programs", rows) + "\n"


def chosen(names: list[str]) -> list[str]:
    """The commands that are named whole, or whose beginning is."""
    commands = list(dict.fromkeys(place.command for place in places() if place.command != ITSELF))
    return [
        command
        for command in commands
        if any(command == name or (name not in commands and command.startswith(name)) for name in names)
    ]


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of npz files; default: OpenML")
    parser.add_argument("--only", nargs="+", default=[""], help="commands to run, or how they begin; default: all")
    parser.add_argument("--list", action="store_true", help="run nothing: print the marked places")
    arguments = parser.parse_args()
    if arguments.list:
        for place in places():
            print(f"{place.page.relative_to(ROOT)}: {place.name}" + (f" ({place.note})" if place.note else ""))
        return
    folder = arguments.data.resolve() if arguments.data else None
    begin, failed = time.perf_counter(), []
    for command in chosen(arguments.only):
        start = time.perf_counter()
        try:
            note = renew(command, folder)
        except subprocess.CalledProcessError as error:
            failed.append(command)
            note = f"failed, exit {error.returncode}; its places are as they were"
        print(f"{time.perf_counter() - start:8.0f} s  {command}: {note}", flush=True)
    for page in {place.page for place in places() if place.command == ITSELF}:
        fill(page, ITSELF, lambda _: overview(), "")
    evidence.main()
    print(f"{time.perf_counter() - begin:8.0f} s  all")
    if failed:
        raise SystemExit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
