"""Checkpoints: atomic, checked, and refused under other settings."""

import logging
import os

import numpy as np
import pytest

from streamsvm import snapshot
from streamsvm.connectors.checkpoint import (
    Checkpoint,
    CheckpointError,
    CheckpointStore,
    check_fingerprint,
    checkpoint_files,
    load_newest,
)
from streamsvm.connectors.folders import AlreadyInUse
from streamsvm.connectors.settings import ConfigError


def checkpoint(sequence):
    return Checkpoint(
        sequence=sequence,
        offsets={"events-0": 64 * sequence},
        fingerprint={"model.C": 1.0, "features.names": ["a"]},
        counters={"learned": sequence, "seconds": 0.5},
        blobs={"model": b"\x00model" * sequence, "scaler": b""},
        arrays={"metrics.margins": np.arange(3.0), "history.rows": np.full((1, 2), np.nan)},
    )


@pytest.fixture
def store(tmp_path):
    with CheckpointStore(tmp_path / "state", keep=3) as store:
        for sequence in (1, 2, 3, 4):
            store.save(checkpoint(sequence))
        yield store


def test_a_checkpoint_comes_back_as_it_was():
    before = checkpoint(2)
    after = Checkpoint.from_bytes(before.to_bytes())
    assert after.to_bytes() == before.to_bytes()
    for name in ("sequence", "offsets", "fingerprint", "counters", "blobs"):
        assert getattr(after, name) == getattr(before, name)
    np.testing.assert_array_equal(after.arrays["history.rows"], before.arrays["history.rows"])


def test_the_newest_is_loaded_and_the_last_few_are_kept(store, tmp_path):
    assert store.load().sequence == 4
    assert [path.name[-9:-5] for path in checkpoint_files(tmp_path / "state")] == ["0004", "0003", "0002"]


def test_no_checkpoint_is_no_error(tmp_path):
    with CheckpointStore(tmp_path / "new", keep=1) as store:
        assert store.load() is None
    assert load_newest(tmp_path / "nothing") is None


@pytest.mark.parametrize("harm", ["cut", "flip", "empty", "text"])
def test_a_damaged_checkpoint_is_passed_over_with_a_warning(store, tmp_path, caplog, harm):
    newest = checkpoint_files(tmp_path / "state")[0]
    data = bytearray(newest.read_bytes())
    data[len(data) // 2] ^= 1
    newest.write_bytes({"cut": data[:-1], "flip": data, "empty": b"", "text": b"hello"}[harm])
    with caplog.at_level(logging.WARNING):
        assert store.load().sequence == 3
    assert newest.name in caplog.text
    store.save(checkpoint(4))
    assert store.load().sequence == 4


def test_only_damaged_checkpoints_stop_the_daemon(store, tmp_path):
    for path in checkpoint_files(tmp_path / "state"):
        path.write_bytes(b"")
    with pytest.raises(CheckpointError, match="none of 3 checkpoints"):
        store.load()


@pytest.mark.parametrize("step", ["write", "fsync", "replace"])
def test_a_crash_while_writing_leaves_the_previous_one(store, tmp_path, monkeypatch, step):
    class Crash(BaseException):
        pass

    def crash(*_):
        raise Crash

    if step == "write":
        monkeypatch.setattr(snapshot, "pack", crash)
    else:
        monkeypatch.setattr(os, step, crash)
    with pytest.raises(Crash):
        store.save(checkpoint(5))
    monkeypatch.undo()
    assert store.load().sequence == 4
    store.save(checkpoint(5))
    assert store.load().sequence == 5
    assert not list((tmp_path / "state").glob(".*.tmp"))


def test_other_settings_are_refused_by_name(tmp_path):
    same = {"model.C": 1.0, "features.names": ["a"]}
    check_fingerprint(checkpoint(1), same, tmp_path)
    with pytest.raises(ConfigError) as caught:
        check_fingerprint(checkpoint(1), {**same, "model.C": 2.0, "model.new": 1}, tmp_path)
    problems = caught.value.problems
    assert f"{tmp_path}: the checkpoint was written with model.C = 1.0, the configuration says 2.0" in problems
    assert any("model.new" in problem for problem in problems)
    assert not any("features.names" in problem for problem in problems)


def test_a_state_folder_has_one_daemon(store, tmp_path):
    with pytest.raises(AlreadyInUse, match=rf"this daemon's state is in use by process {os.getpid()}"):
        CheckpointStore(tmp_path / "state", keep=1)
    store.close()
    CheckpointStore(tmp_path / "state", keep=1).close()
