"""Files that are whole by their checksums and wrong inside: each reader refuses them with its own error."""

import json
from contextlib import closing, suppress
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from streamsvm import SnapshotError, WarmupScaler
from streamsvm.connectors.commands.replays import dlq, replay
from streamsvm.connectors.labelling.oracles import truth_from_file
from streamsvm.connectors.logs.embedded import LocalLog
from streamsvm.connectors.logs.segments import LogCorruption
from streamsvm.connectors.logs.transport import Committed, Record
from streamsvm.connectors.records.columns import Columns
from streamsvm.connectors.records.files import read_events
from streamsvm.connectors.records.formats.avro import AvroFormat, SchemaError
from streamsvm.connectors.records.labels import Label
from streamsvm.connectors.records.predictions import Prediction
from streamsvm.connectors.runtime.folders import FileError
from streamsvm.connectors.settings.estimates import EstimateSettings
from streamsvm.connectors.settings.loading import load
from streamsvm.connectors.settings.model import ModelSettings
from streamsvm.connectors.settings.sections import ConfigError, LabelSettings, LogSettings, Settings
from streamsvm.connectors.trainer import trainer
from streamsvm.connectors.trainer.state.checkpoint import Checkpoint, CheckpointError, CheckpointStore, load_newest
from streamsvm.connectors.trainer.state.models import SingleModel
from streamsvm.connectors.trainer.state.quality.prequential import Snapshot
from streamsvm.connectors.trainer.state.state import State
from streamsvm.core.saving import snapshot

SETTINGS = Settings(
    log=LogSettings(labels="labels", questions="questions"),
    model=ModelSettings(scaling="none"),
    estimates=EstimateSettings(loo=True),
)
OWN_ERRORS = (CheckpointError, SnapshotError)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A store, and a checkpoint of a partition that has learned a little and waits for labels."""
    with closing(CheckpointStore(tmp_path_factory.mktemp("state"), 3)) as store:
        state = State.new(SETTINGS, store, 0)
        assert isinstance(state.models, SingleModel)
        for number in range(8):
            state.models.model.learn_one({"a": float(number), "b": 1.0}, number > 3)
            value = json.dumps({"id": number, "x": {"a": 1.0}}).encode()
            state.join.add_event(
                number, value, y=None, w=1.0, said=Prediction(0.5, 0.5), entity=b"k", time=number, at=number
            )
        state.join.add_label(Label(99, 99, True, None, None, 1, "set", None), 0, 9)
        state.metrics.update(np.array([True, False]), np.array([0.5, 0.25]))
        state.history.add(Snapshot(50, 0.1, 0.9, 3, 1.0))
        state.breaker.observe([True, False])
        state.scaler = WarmupScaler()
        yield store, state.to_checkpoint(SETTINGS)[0]


def go_on(store, data):
    """What a trainer does with a checkpoint at its start, and for its metrics and its next checkpoint."""
    state = State.from_checkpoint(Checkpoint.from_bytes(data), SETTINGS, store, 0)
    state.metrics.rolling()
    state.metrics.cumulative()
    state.breaker.observe([True])
    state.to_checkpoint(SETTINGS)[0].to_bytes()


def test_the_checkpoint_itself_is_good(written):
    store, checkpoint = written
    go_on(store, checkpoint.to_bytes())


def damaged_arrays(array):
    yield from (
        array[:-1] if array.ndim else array.reshape(1),
        np.zeros(array.shape, np.float32),
        np.ones(array.shape, np.int8),
    )
    yield from (np.concatenate([array.ravel(), array.ravel()]), array.reshape(-1, 1), array[..., None], np.zeros(0))
    if array.dtype.kind == "f":
        yield from (np.full_like(array, np.nan), np.full_like(array, np.inf), np.full_like(array, 1e308))
    if array.dtype.kind == "i":
        yield from (np.full_like(array, -5), np.full_like(array, np.iinfo(array.dtype).max))


def test_damaged_arrays(written):
    store, checkpoint = written
    assert {name.partition(".")[0] for name in checkpoint.arrays} == {
        "join",
        "metrics",
        "history",
        "breaker",
        "estimates",
    }
    n_refused = 0
    for name, array in checkpoint.arrays.items():
        others = {other: kept for other, kept in checkpoint.arrays.items() if other != name}
        for arrays in (others, *({**others, name: damaged} for damaged in damaged_arrays(array))):
            data = replace(checkpoint, arrays=arrays).to_bytes()
            n_refused += is_refused(store, data)
    assert n_refused > 100


def is_refused(store, data):
    """Whether a checkpoint is refused; anything but the two errors for that fails the test."""
    try:
        go_on(store, data)
    except OWN_ERRORS:
        return True
    return False


def test_damaged_blobs(written):
    store, checkpoint = written
    assert {"model", "scaler", "labelling"} <= checkpoint.blobs.keys()
    for name in ("model", "scaler", "labelling"):
        for blob in (
            b"",
            b"{}",
            b"[]",
            b"\xff",
            b"[" * 3000,
            b'{"loop": 7, "ids": "{"}',
            b'{"loop": {}, "ids": "[[1]]"}',
        ):
            with pytest.raises(OWN_ERRORS):
                go_on(store, replace(checkpoint, blobs={**checkpoint.blobs, name: blob}).to_bytes())
        others = {other: blob for other, blob in checkpoint.blobs.items() if other != name}
        with suppress(*OWN_ERRORS):
            go_on(store, replace(checkpoint, blobs=others).to_bytes())


@pytest.mark.parametrize(
    "change",
    [
        {"sequence": "1"}, {"sequence": -1}, {"sequence": 1 << 70}, {"sequence": None}, {"offsets": []},
        {"offsets": {"events": "1"}}, {"offsets": {"events": -1, "labels": 0}},
        {"offsets": {"events": 1.5, "labels": 0}}, {"fingerprint": 7}, {"counters": [1]}, {"more": 1},
    ],
)  # fmt: skip
def test_a_damaged_header_lets_an_older_checkpoint_be_used(written, tmp_path, change):
    _, good = written
    with closing(CheckpointStore(tmp_path, 3)) as store:
        store.save(good.to_bytes(), 1)
        meta, arrays = snapshot.unpack(good.to_bytes(), "checkpoint")
        store.save(snapshot.pack("checkpoint", meta | change, arrays), 2)
        number, checkpoint = load_newest(tmp_path)
    assert number[1] == 1
    assert checkpoint.offsets == good.offsets


@pytest.mark.parametrize("offsets", [{}, {"events": 1}, {"labels": 1}])
def test_missing_offsets(written, offsets):
    store, checkpoint = written
    with pytest.raises(SnapshotError, match="must be of type int"):
        go_on(store, replace(checkpoint, offsets=offsets).to_bytes())


@given(st.data())
@hypothesis_settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_damaged_counters(written, data):
    store, checkpoint = written
    name = data.draw(st.sampled_from([*checkpoint.counters, "more"]))
    value = data.draw(st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3))
    with suppress(*OWN_ERRORS):
        go_on(store, replace(checkpoint, counters=checkpoint.counters | {name: value}).to_bytes())


@pytest.mark.parametrize(
    "content",
    [
        b"", b"{", b"\xff", b"7", b"[]", b"{}", b"[" * 100_000, b'{"asked": 7, "spans": {}}',
        b'{"asked": {"from": 1, "to": 2}, "spans": [1]}',
        b'{"asked": {"from": "1", "to": "2"}, "spans": {"events": {"x": [1, 2]}}}',
    ],
)  # fmt: skip
def test_a_damaged_range_of_a_replay(tmp_path, content):
    path = tmp_path / "replay.json"
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match=r"replay\.json is damaged"):
        replay._read_spans(path)


LONG = "9" * 5000  # digits, more than Python reads as a number


@pytest.mark.parametrize("digits", [LONG, "9" * 30, "\u0663", "-1"])
def test_numbers_in_notes_and_headers_are_bounded(digits):
    assert trainer.parse_note("3:4") == (3, 4)
    assert [trainer.parse_note(note) for note in (f"{digits}:1", f"1:{digits}")] == [None, None]
    letter = dlq.DeadLetter.read(Record("dlq", 0, 1, 0, None, b"", [("sv-dlq-partition", digits.encode())]))
    assert letter.home == ("?", -1)


@pytest.mark.parametrize("content", [b'[true, ""]', b'[-1, ""]', b'[9223372036854775808, ""]', b'[1e3, ""]'])
def test_a_committed_offset_that_cannot_be_is_no_offset(tmp_path, content):
    with LocalLog(tmp_path, group="g") as log:
        log.produce("events", b"")
        log.commit({("events", 0): Committed(1)})
        (path,) = (path for path in tmp_path.rglob("*") if path.is_file() and path.read_bytes().startswith(b"[1,"))
        path.write_bytes(content)
        with pytest.raises(LogCorruption, match="must hold an offset"):
            log.committed("events")


def test_files_that_only_look_like_epochs_are_none_of_ours(tmp_path):
    for name in ("epoch-old", "epoch-1000000", "epoch-"):
        (tmp_path / name).touch()
    with closing(CheckpointStore(tmp_path, 3)) as store:
        assert store.epoch == 1
    assert len(list(tmp_path.glob("epoch-*"))) == 4


@pytest.mark.parametrize("number", [1 << 63, 10**30, -1, True])
def test_counters_of_a_checkpoint_are_bounded(written, number):
    store, checkpoint = written
    data = replace(checkpoint, counters=checkpoint.counters | {"learned": number}).to_bytes()
    with pytest.raises(CheckpointError, match="from 0 to"):
        go_on(store, data)


@pytest.mark.parametrize("note", ["{", "7", "[]", '{"not-json": "7"}', "[" * 100_000])
def test_a_damaged_note_of_what_was_replayed(note):
    with pytest.raises(LogCorruption, match="cannot be read"):
        dlq.Replayed.from_commit(Committed(3, note))


@pytest.mark.parametrize(
    "content",
    [
        b"[" * 100_000, b"7", b'{"type": "record", "fields": 7}',
        b'{"type": "record", "fields": [{"name": [], "type": 1}]}',
    ],
)  # fmt: skip
def test_a_damaged_schema(tmp_path, content):
    pytest.importorskip("fastavro")
    (tmp_path / "1.avsc").write_bytes(content)
    with pytest.raises(SchemaError):
        AvroFormat(tmp_path)


SEEDS = {
    "csv": b'id,a,b,y\n1,0.5,2,1\n2,1e3,-4,0\n"x ""q",7,8,1\n',
    "jsonl": b'{"id": 1, "x": {"a": 0.5}, "y": true}\n{"a": 1, "y": 0}\n{"id": "z", "x": [1], "y": false, "w": 2}\n',
    "libsvm": b"+1 1:0.5 7:2\n-1 2:1 # c\n1 3:2\n",
    "toml": b'[log]\ndir = "log"\n[model]\nC = 1.0\n[kafka]\nbootstrap_servers = "a:1"\n',
}
PIECES = [
    b"\xff", b"\0", b"\n", b"\r", b'"', b"[" * 3000, b'{"a":' * 3000, b"1e999", b"nan", b",", b":", b"=",
    b"\xed\xa0\x80", b"\\ud800", b"a." * 999, "\u0663".encode(), "\u00b2".encode(), b"9" * 5000, b"null",
    b"1979-05-27", b"x" * 140_000,
]  # fmt: skip


@given(st.sampled_from(sorted(SEEDS)), st.lists(st.tuples(st.floats(0, 1), st.sampled_from(PIECES)), max_size=3))
def test_damaged_files_of_people(tmp_path_factory, kind, damage):
    data = SEEDS[kind]
    for where, piece in damage:
        place = int(where * len(data))
        data = data[:place] + piece + data[place:]
    path = tmp_path_factory.mktemp("files") / f"file.{kind}"
    path.write_bytes(data)
    if kind == "toml":
        with suppress(ConfigError):
            load(path, {})
        return
    for columns in (Columns(), Columns(label="y", id="id"), Columns(label="y", positive="1", group="a")):
        with suppress(FileError):
            list(read_events(path, columns=columns))
    with suppress(FileError):
        truth_from_file(path, LabelSettings())
