"""Records of an embedded log, and the configuration of a small application: what tests write and read.

The place of a log is its folder, or the settings that name it.
"""

import contextlib
import json
from dataclasses import replace

import numpy as np

from streamsvm.connectors.logs.embedded import LocalLog
from streamsvm.connectors.logs.segments import Appender
from streamsvm.connectors.settings.sections import DaemonSettings, LogSettings, Settings


def config_text(**daemon):
    """The text of a configuration; keys of [daemon] may be given."""
    values = {"batch": 16, "follow": False} | daemon
    lines = "".join(f"{key} = {json.dumps(value)}\n" for key, value in values.items())
    return f"[model]\nC = 10.0\n[daemon]\n{lines}"


def write_config(folder, **daemon):
    """The file of such a configuration, with an empty embedded log beside it."""
    path = folder / "app.toml"
    path.write_text(config_text(**daemon))
    (folder / "log").mkdir(exist_ok=True)
    return path


def some_events(n, seed=0):
    """Labelled events of two features: whether a point lies outside a circle."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2)).round(4).tolist()
    return [
        json.dumps({"id": i, "x": {"a": a, "b": b}, "y": a * a + b * b > 1.4}).encode() for i, (a, b) in enumerate(x)
    ]


def change(settings, **changes):
    """Settings with other values, as a dict for each section."""
    for section, values in changes.items():
        settings = replace(settings, **{section: replace(getattr(settings, section), **values)})
    return settings


def configure(folder, **changes):
    """Settings of a small trainer over an embedded log in this folder, with other values as a dict for each section."""
    settings = Settings(
        log=LogSettings(dir=folder / "log"),
        daemon=DaemonSettings(batch=16, state_dir=folder / "state", checkpoint_records=48, window=50, follow=False),
    )
    return change(settings, **changes)


def append(where, values, topic="events", **options):
    """Append bytes, and other values as JSON."""
    with LocalLog(_folder(where)) as log:
        for value in values:
            log.produce(topic, _encoded(value), **options)


def append_at(where, rows, number=0, segment_bytes=1 << 20):
    """Append (time, key, value) by topic; values are bytes, None, or something as JSON."""
    for topic, records in rows.items():
        folder = _folder(where) / topic / str(number)
        folder.mkdir(parents=True, exist_ok=True)
        with contextlib.closing(Appender(folder, segment_bytes)) as appender:
            for time, key, value in records:
                appender.append(time, key, _encoded(value), ())


def read(where, topic="events", partition=None):
    """The records of a topic; default: those of all partitions, one after the other."""
    with LocalLog(_folder(where)) as log:
        for number in log.end_offsets(topic) if partition is None else [partition]:
            log.seek(topic, number, 0)
        records = []
        while more := log.poll(0, 10**6):
            records += more
        return records


def read_json(where, topic, partition=None):
    """The values of a topic's records."""
    return [json.loads(record.value) for record in read(where, topic, partition)]


def predictions(settings, topic=None):
    """The predictions by src; repeated ones must be the same to the byte."""
    found = {}
    for record in read(settings, topic or settings.log.predictions):
        assert found.setdefault(json.loads(record.value)["src"], record.value) == record.value
    return found


def _encoded(value):
    return value if isinstance(value, bytes | None) else json.dumps(value).encode()


def _folder(where):
    return where.log.dir if isinstance(where, Settings) else where
