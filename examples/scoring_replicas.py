"""A trainer, and two scorers that predict with the models it publishes.

They share a log in a folder, where every scorer sees every event and writes to its own topic. On Kafka, the scorers of
one group share the events; the commands `streamsvm run` and `streamsvm score` are the same.
"""
# ruff: noqa: S603, T201 - we start our own commands; an example answers by printing

import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path

from streamsvm.connectors.logs.embedded import LocalLog

CONFIG = """
[log]
model = "model"                  # where the trainer publishes
[model]
C = 10.0
gamma = 0.5
[daemon]
follow = false                   # stop at the end of the log; in production, wait for more
"""
COMMAND = [sys.executable, "-c", "import sys; from streamsvm.connectors.commands.cli import main; sys.exit(main())"]

with tempfile.TemporaryDirectory(prefix="streamsvm-") as name:
    folder = Path(name)
    config = folder / "app.toml"
    config.write_text(CONFIG)
    draw = random.Random(0)  # noqa: S311 - data, not secrets
    with LocalLog(folder / "log") as log:
        for number in range(2000):
            x, y = draw.gauss(0, 1), draw.gauss(0, 1)
            event = {"id": number, "x": {"x": x, "y": y}}
            labelled = {**event, "y": x * x + y * y < 1}
            log.produce("events", json.dumps(labelled if number < 1500 else event).encode())
        log.flush()

    subprocess.run([*COMMAND, "run", str(config)], check=True)
    replicas = [
        subprocess.Popen([*COMMAND, "score", str(config), "--set", f"log.scores=scores-{n}", "--set", f"group.id=g{n}"])
        for n in (1, 2)
    ]
    for replica in replicas:
        if replica.wait(timeout=120) != 0:
            raise SystemExit("a replica failed")

    with LocalLog(folder / "log") as log:
        for n in (1, 2):
            log.seek(f"scores-{n}", 0, 1999)
            print(f"replica {n}, {log.end_offsets(f'scores-{n}')[0]} answers:", log.poll(0, 1)[0].value.decode())
