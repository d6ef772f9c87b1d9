"""Files that are whole by their checksums and wrong inside: each reader refuses them with its own error."""

import json
from contextlib import closing, suppress
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from streamsvm import SnapshotError, WarmupScaler, snapshot
from streamsvm.connectors.checkpoint import Checkpoint, CheckpointError, CheckpointStore, load_newest
from streamsvm.connectors.models import SingleModel
from streamsvm.connectors.observe import Snapshot
from streamsvm.connectors.settings import EstimateSettings, FeatureSettings, LogSettings, Settings
from streamsvm.connectors.state import State
from streamsvm.connectors.wire import Label

SETTINGS = Settings(
    log=LogSettings(labels="labels", questions="questions"),
    features=FeatureSettings(scale="none"),
    estimates=EstimateSettings(loo=True),
)
OWN_ERRORS = (CheckpointError, SnapshotError)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A store, and a checkpoint of a partition that has learned a little and waits for labels."""
    with closing(CheckpointStore(tmp_path_factory.mktemp("state"), 3)) as store:
        state = State.new(SETTINGS, store, None, 0)
        assert isinstance(state.models, SingleModel)
        for number in range(8):
            state.models.model.learn_one({"a": float(number), "b": 1.0}, number > 3)
            value = json.dumps({"id": number, "x": {"a": 1.0}}).encode()
            state.join.add_event(number, value, y=None, w=1.0, margin=0.5, entity=b"k", time=number)
        state.join.add_label(Label(99, 99, True, None, None, 1, "set", None), 0, 9)
        state.metrics.update(np.array([True, False]), np.array([0.5, 0.25]))
        state.history.add(Snapshot(50, 0.1, 0.9, 3, 1.0))
        state.breaker.observe([True, False])
        state.scaler = WarmupScaler()
        yield store, state.to_checkpoint(SETTINGS)


def go_on(store, data):
    """What a trainer does with a checkpoint at its start, and for its metrics and its next checkpoint."""
    state = State.from_checkpoint(Checkpoint.from_bytes(data), SETTINGS, store, 0)
    state.metrics.rolling()
    state.metrics.cumulative()
    state.breaker.observe([True])
    state.to_checkpoint(SETTINGS).to_bytes()


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
    with pytest.raises(CheckpointError, match="its content is damaged"):
        go_on(store, replace(checkpoint, offsets=offsets).to_bytes())


@given(st.data())
@hypothesis_settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_damaged_counters(written, data):
    store, checkpoint = written
    name = data.draw(st.sampled_from([*checkpoint.counters, "more"]))
    value = data.draw(st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3))
    with suppress(*OWN_ERRORS):
        go_on(store, replace(checkpoint, counters=checkpoint.counters | {name: value}).to_bytes())
