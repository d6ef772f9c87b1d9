"""A challenger that begins with the log: how fast it catches up, and how long answers take meanwhile.

The stream has 22 columns and labels inside the events.  The first table has the records for each CPU second of a rerun
of the challenger's model, with labels in the events or on a topic of their own.  For the second one, a trainer serves
100 events a second; its answers are timed without a challenger and while one catches up, in turns.

    python benchmarks/catching_up.py          # 20000 events to catch up with
    python benchmarks/catching_up.py --quick  # 4000 events
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
from challengers import COLUMNS, configure, events

from streamsvm.connectors.logs.embedded import LocalLog
from streamsvm.connectors.settings.challengers import ChallengerSettings
from streamsvm.connectors.settings.model import ModelSettings
from streamsvm.connectors.trainer.rerun import Rerun, Stage, alone
from streamsvm.core.threads import set_num_threads

BATCH = 32  # as catching up takes them
RATE = 100  # events a second
MODEL = ModelSettings(budget=1600)  # so many members in the end
_CONFIG = """
[model]
budget = 1600
"""
_COMMAND = [sys.executable, "-c", "from streamsvm.connectors.commands.cli import main; main()", "run", "app.toml"]
_CHALLENGER = """
[[challenger]]
name = "c"
begin = "earliest"
"""


def produce(folder: Path, rows: list[dict], *, apart: bool = False) -> None:
    """Append events, with their labels inside, or on a topic of their own."""
    with LocalLog(folder / "log") as log:
        for row in rows:
            event = {name: value for name, value in row.items() if not apart or name != "y"}
            log.produce("events", json.dumps(event).encode())
            if apart:
                log.produce("labels", json.dumps({"id": row["id"], "y": row["y"]}).encode())


def rate(folder: Path, rows: list[dict], labels: str) -> tuple[float, int]:
    """Records for each CPU second, and support vectors in the end."""
    folder.mkdir()
    produce(folder, rows, apart=bool(labels))
    settings = configure(folder, ["model"], "x")
    settings = replace(settings, log=replace(settings.log, labels=labels))
    own = alone(settings, ChallengerSettings("c", model=MODEL), BATCH)
    for n, run in ((300, "warm"), (len(rows), "timed")):
        rerun = Rerun(own, 0, folder / run, is_silent=True)
        begin = time.process_time()
        state = rerun.run(Stage(n, n if labels else 0))
        seconds = time.process_time() - begin
    assert state is not None
    return len(rows) * (2 if labels else 1) / seconds, state.model.n_support


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="4000 events")
    n, seconds, turns = (4000, 1.0, 1) if parser.parse_args().quick else (20_000, 2.0, 3)
    set_num_threads(1)
    rows = events(n)
    with tempfile.TemporaryDirectory() as name:
        for labels in ("", "labels"):
            found, n_support = rate(Path(name) / f"rate{labels}", rows, labels)
            where = "on their topic" if labels else "in the events"
            print(f"labels {where:16}{found:10,.0f} records/CPU s of {COLUMNS} columns, {n_support} support vectors")
        print(f"{'':28}{'median':>10}{'95 %':>10}{'99 %':>10}   ms until an answer")
        times: dict[str, list[float]] = {"alone": [], "catching up": []}
        consumed = prepared(Path(name) / "consumed", rows)
        for turn in range(turns):
            for what, found in times.items():
                folder = shutil.copytree(consumed, Path(name) / f"{what}-{turn}")
                found += answers(folder, rows, seconds, challenged=what != "alone")
        for what, found in times.items():
            shown = "".join(f"{1000 * q:10.1f}" for q in np.percentile(found, [50, 95, 99]))
            print(f"{what:28}{shown}   {len(found)} answers")


# --- answers ----------------------------------------------------------------------------------------------------------


def prepared(folder: Path, rows: list[dict]) -> Path:
    """A folder with a log, and with the state of a trainer that has consumed it."""
    folder.mkdir()
    produce(folder, rows)
    (folder / "app.toml").write_text(_CONFIG)
    subprocess.run([*_COMMAND, "--set", "daemon.follow=false"], check=True, capture_output=True, cwd=folder)
    return folder


def answers(folder: Path, rows: list[dict], seconds: float, *, challenged: bool) -> list[float]:
    """Seconds until each answer of a trainer that goes on in a prepared folder.

    With a challenger, those until it has caught up; without one, those of so many seconds.
    """
    said = folder / "said"
    (folder / "app.toml").write_text(_CONFIG + (_CHALLENGER if challenged else ""))
    with open(said, "w") as file, LocalLog(folder / "log") as log:
        process = subprocess.Popen(_COMMAND, stdout=subprocess.DEVNULL, stderr=file, cwd=folder)
        try:
            end = time.perf_counter() + (60.0 if challenged else 30.0)

            def is_over(since: float) -> bool:
                now = time.perf_counter()
                is_done = "has caught up" in said.read_text() if challenged else now > since + seconds
                return is_done or now > end

            return timed(log, rows, is_over)
        finally:
            process.terminate()
            process.wait()


def timed(log: LocalLog, rows: list[dict], is_over: Callable[[float], bool]) -> list[float]:
    """Seconds from each event to its prediction, in steps of a millisecond, from the first prediction on."""
    begun: dict[int, float] = {}
    found: list[float] = []
    log.seek("predictions", 0, log.end_offsets("predictions")[0])
    i, start = 0, time.perf_counter()
    while not found or i % 5 or not is_over(start):
        now = time.perf_counter()
        if now >= start + i / RATE and (i == 0 or found):
            begun[len(rows) + i] = now
            log.produce("events", json.dumps(rows[i % len(rows)] | {"id": len(rows) + i}).encode())
            i += 1
        for record in log.poll(0.0, 1000):
            found.append(time.perf_counter() - begun[json.loads(record.value or b"")["id"]])
            if len(found) == 1:
                start = time.perf_counter()
        time.sleep(0.001)
    return found[1:]


if __name__ == "__main__":
    main()
