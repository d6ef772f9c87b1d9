"""The trainer without a broker: events go into a local log, predictions and the model come out."""
# ruff: noqa: T201 - an example answers by printing

import json
import random
import tempfile
from pathlib import Path

from streamsvm.connectors.logs.embedded import LocalLog
from streamsvm.connectors.settings.model import ModelSettings
from streamsvm.connectors.settings.sections import DaemonSettings, LogSettings, Settings
from streamsvm.connectors.trainer.trainer import run

folder = Path(tempfile.mkdtemp(prefix="streamsvm-"))
settings = Settings(
    log=LogSettings(dir=folder / "log"),
    model=ModelSettings(C=10.0, gamma=1.0),
    daemon=DaemonSettings(state_dir=folder / "state", follow=False),
)

draw = random.Random(0)  # noqa: S311 - data, not secrets
with LocalLog(settings.log.dir) as log:
    for number in range(2000):
        x, y = draw.gauss(0, 1), draw.gauss(0, 1)
        log.produce("events", json.dumps({"id": number, "x": {"x": x, "y": y}, "y": x * x + y * y < 1}).encode())
    log.produce("events", b"this is not JSON")
    log.flush()

state = run(settings)[0]  # of the only partition; once more, and it goes on: there is nothing left to do
print(state.metrics.rolling())
print(f"{state.counters.learned} learned, {state.counters.bad} refused, digest {state.model.digest()[:12]}")

with LocalLog(settings.log.dir) as log:
    log.seek("predictions", 0, 1998)
    for record in log.poll(0, 10):
        print(record.value.decode())
    log.seek("dlq", 0, 0)
    print("refused, because:", dict(log.poll(0, 1)[-1].headers)["sv-dlq-error"].decode())
