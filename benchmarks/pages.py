"""Runs the commands whose output the pages show, and puts what they print in place of what they printed before.

    python benchmarks/pages.py --data DIR                    # every marked place: an hour or more
    python benchmarks/pages.py --data DIR --only forget.py "mnist.py --parts delta"
    python benchmarks/pages.py --list                        # the marked places

A page marks such a place by comments, and may fence the lines between them:

    <!-- printed by: mnist.py --parts delta -->
    <!-- end -->

At the end it prints the CPU seconds of each command.
"""

import argparse
import os
import re
import resource
import subprocess
import sys
from pathlib import Path

from lasvm import THREADS

HERE = Path(__file__).parent
PLACE = re.compile(r"(<!-- printed by: (.+?) -->\n)(.*?)(<!-- end -->)", re.DOTALL)
FENCE = "```\n"


def printed(command: str, folder: Path | None) -> str:
    """What a command prints, from a process with one thread."""
    script, *rest = command.split()
    data = ["--data", str(folder)] if folder else []
    environment = os.environ | dict.fromkeys(THREADS, "1")
    words = [sys.executable, str(HERE / script), *data, *rest]
    return subprocess.run(words, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout.strip() + "\n"


def renewed(page: str, arguments: argparse.Namespace) -> str:
    """The page with new output in its marked places."""

    def place(found: re.Match[str]) -> str:
        begin, command, old, end = found.groups()
        if not command.startswith(tuple(arguments.only)):
            return found[0]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        output = printed(command, arguments.data)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        print(f"{seconds:8.1f} CPU s  {command}", flush=True)
        return begin + (FENCE + output + FENCE if old.startswith(FENCE) else f"\n{output}\n") + end

    return PLACE.sub(place, page)


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of npz files; default: OpenML")
    parser.add_argument("--only", nargs="+", default=[""], help="how the commands to run begin; default: all")
    parser.add_argument("--list", action="store_true", help="run nothing: print the marked places")
    arguments = parser.parse_args()
    for path in sorted(HERE.rglob("*.md")):
        page = path.read_text(encoding="utf-8")
        if arguments.list:
            for _, command, *_ in PLACE.findall(page):
                print(f"{path.relative_to(HERE)}: {command}")
        elif (new := renewed(page, arguments)) != page:
            path.write_text(new, encoding="utf-8")


if __name__ == "__main__":
    main()
