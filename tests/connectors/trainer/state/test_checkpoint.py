"""Checkpoints: atomic, checked, and refused under other settings."""

import logging
import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from streamsvm.connectors.logs.transport import TakenOver
from streamsvm.connectors.settings.sections import ConfigError
from streamsvm.connectors.trainer.state import checkpoint as checkpoint_module
from streamsvm.connectors.trainer.state.checkpoint import (
    Checkpoint,
    CheckpointError,
    CheckpointStore,
    check_fingerprint,
    checkpoint_files,
    load_newest,
)
from streamsvm.connectors.trainer.state.journal import Cut, Kind
from streamsvm.core.saving import snapshot


def checkpoint(sequence):
    return Checkpoint(
        sequence=sequence,
        offsets={"events": 64 * sequence, "labels": 8},
        fingerprint={"model.C": 1.0, "features.names": ["a"]},
        counters={"learned": sequence, "seconds": 0.5},
        blobs={"model": b"\x00model" * sequence, "scaler": b""},
        arrays={"metrics.margins": np.arange(3.0), "history.rows": np.full((1, 2), np.nan)},
    )


def save(store, sequence, owner=""):
    """Write a checkpoint that tells by whom."""
    counters = {"learned": sequence, "owner": owner}
    return store.save(replace(checkpoint(sequence), counters=counters).to_bytes(), sequence)


@pytest.fixture
def open_store(tmp_path):
    """Opens the folder again and again, as one process after another does."""
    with ExitStack() as stack:

        def open_store(keep=3):
            return stack.enter_context(closing(CheckpointStore(tmp_path / "state", keep)))

        yield open_store


@pytest.fixture
def store(open_store):
    store = open_store()
    for sequence in (1, 2, 3, 4):
        save(store, sequence)
    return store


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


def test_no_checkpoint_is_no_error(open_store, tmp_path):
    assert open_store().load() is None
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
    save(store, 4)
    assert store.load().sequence == 4


def test_only_damaged_checkpoints_stop_the_daemon(store, tmp_path):
    for path in checkpoint_files(tmp_path / "state"):
        path.write_bytes(b"")
    with pytest.raises(CheckpointError, match="none of 3 checkpoints"):
        store.load()


@pytest.mark.parametrize("step", ["write", "fsync", "replace"])
def test_a_crash_while_writing_leaves_the_previous_one(store, open_store, tmp_path, monkeypatch, step):
    class Crash(BaseException):
        pass

    def crash(*_):
        raise Crash

    if step == "write":
        monkeypatch.setattr(snapshot, "write_atomic", crash)
    else:
        monkeypatch.setattr(os, step, crash)
    with pytest.raises(Crash):
        save(store, 5)
    monkeypatch.undo()
    assert store.load().sequence == 4
    following = open_store()
    assert following.load().sequence == 4
    assert not list((tmp_path / "state").glob(".*.tmp"))
    save(following, 5)
    assert following.load().sequence == 5


def test_other_settings_are_refused_by_name(tmp_path):
    same = {"model.C": 1.0, "features.names": ["a"], "model.since": None}  # off, and unknown to an older version
    check_fingerprint(checkpoint(1), same, tmp_path)
    with pytest.raises(ConfigError) as caught:
        check_fingerprint(checkpoint(1), {**same, "model.C": 2.0, "model.new": 1}, tmp_path)
    problems = caught.value.problems
    assert f"{tmp_path}: the checkpoint was written with model.C = 1.0, the configuration says 2.0" in problems
    assert f"{tmp_path}: the checkpoint was written without model.new, the configuration says 1" in problems
    assert any("model.new" in problem for problem in problems)
    assert not any("features.names" in problem for problem in problems)


@pytest.mark.parametrize(("scale", "scaling"), [("standard", "standard"), ("minmax", "standard"), ("none", None)])
def test_a_frozen_scale_of_0_1_0_goes_on(tmp_path, scale, scaling):
    """Its checkpoint has the scaler itself."""
    old = replace(checkpoint(1), fingerprint={"model.C": 1.0, "features.scale": scale, "features.warmup": 300})
    check_fingerprint(old, {"model.C": 1.0, "model.scaling": scaling}, tmp_path)
    with pytest.raises(ConfigError, match=r"model\.scaling"):
        check_fingerprint(old, {"model.scaling": "other"}, tmp_path)


# --- one owner after another ------------------------------------------------------------------------------------------


def test_who_opens_the_folder_last_owns_it(open_store):
    first = open_store()
    save(first, 1)
    second = open_store()
    assert second.epoch > first.epoch
    with pytest.raises(TakenOver, match="belongs to another process"):
        save(first, 2)
    assert second.load().sequence == 1
    save(second, 2)
    save(second, 3)


def test_each_owner_has_an_epoch_of_its_own(tmp_path):
    with ThreadPoolExecutor(8) as pool:
        stores = list(pool.map(lambda _: CheckpointStore(tmp_path / "state", 3), range(40)))
    assert len({store.epoch for store in stores}) == 40
    assert [int(path.name[6:]) for path in tmp_path.glob("state/epoch-*")] == [max(store.epoch for store in stores)]


def write_unnoticed(monkeypatch, store, sequence, owner):
    """A checkpoint of an owner that looked for a successor just before there was one."""
    with monkeypatch.context() as patch:
        patch.setattr(checkpoint_module, "_newest_epoch", lambda _: store.epoch)
        return save(store, sequence, owner)


@pytest.mark.parametrize("n_late", [1, 5])
@pytest.mark.parametrize("n_saved", [0, 1, 2])
def test_what_a_replaced_owner_writes_does_not_count(open_store, monkeypatch, n_saved, n_late):
    first = open_store()
    save(first, 1, "first")
    second = open_store()
    second.load()
    journal, _, _ = second.begin_journal()
    for sequence in range(2, 2 + n_saved):
        journal = save(second, sequence, "second")
    journal.append(Cut(Kind.CUT, 500, 5))
    for sequence in range(2, 2 + n_late):
        write_unnoticed(monkeypatch, first, sequence, "first").append(Cut(Kind.CUT, 300, 3))
    third = open_store()
    found = third.load()
    assert (found.counters["owner"], found.sequence) == ("second" if n_saved else "first", 1 + n_saved)
    assert third.begin_journal()[1] == [Cut(Kind.CUT, 500, 5)]


def test_a_replaced_owner_removes_nothing_of_its_successor(open_store, monkeypatch, tmp_path):
    first = open_store(keep=1)
    save(first, 1)
    second = open_store(keep=1)
    second.load()
    second.begin_journal()
    save(second, 2)
    files = {path.name for path in tmp_path.glob("state/*-000002-*")}
    for sequence in (2, 3, 4):
        write_unnoticed(monkeypatch, first, sequence, "first")
    assert files <= {path.name for path in tmp_path.glob("state/*")}


def test_what_came_after_the_committed_checkpoint_never_was(open_store):
    store = open_store()
    for sequence in (1, 2, 3):
        save(store, sequence).append(Cut(Kind.CUT, 100 * sequence, 0))
    following = open_store()
    following.roll_back((store.epoch, 2))
    assert following.load().sequence == 2
    cuts = following.begin_journal()[1]
    assert cuts == [Cut(Kind.CUT, 200, 0), Cut(Kind.CUT, 300, 0)]  # also what was taken after it


def test_checkpoints_without_a_commit_are_left_alone(store, tmp_path):
    """The group's offsets have expired, or it is another group: nothing says which checkpoint counts."""
    with pytest.raises(CheckpointError, match="nothing was committed for the partition"):
        store.roll_back(None)
    assert len(checkpoint_files(tmp_path / "state")) == 3


def test_before_the_first_commit_there_is_only_the_first_checkpoint(open_store):
    for _ in range(3):
        store = open_store()
        store.roll_back(None)
        state = store.load()
        assert state is None or state.sequence == 1
        for sequence in (1, 2) if state is None else (2,):
            save(store, sequence)


@pytest.mark.parametrize("committed", [(1, 9), (9, 4)])
def test_a_committed_checkpoint_that_is_gone_is_no_fresh_beginning(store, committed):
    with pytest.raises(CheckpointError, match=f"no checkpoint {committed[1]} of epoch {committed[0]}"):
        store.roll_back(committed)


# --- the journals since a checkpoint ----------------------------------------------------------------------------------


def went_on(store):
    store.load()
    return store.begin_journal()


def cuts_of(store):
    return went_on(store)[1]


def cut(number):
    return Cut(Kind.CUT, number, 0)


def test_a_journal_begins_with_every_checkpoint(open_store):
    store = open_store()
    store.load()
    journal, cuts, suspect = store.begin_journal()
    assert (cuts, suspect) == ([], None)
    journal.append(cut(1))
    save(store, 1).append(cut(2))
    assert cuts_of(open_store()) == [cut(2)]


def test_what_is_taken_again_is_in_the_journal_again(open_store):
    store = open_store()
    save(store, 1).append(cut(1))
    for number in (2, 3, 4):
        journal, cuts, _ = went_on(open_store())
        assert cuts == [cut(i) for i in range(1, number)]
        journal.append(cut(number))


def test_a_damaged_checkpoint_costs_nothing_but_time(open_store, tmp_path):
    """Two journals in a row lead from the checkpoint before it to where the owner was."""
    store = open_store()
    save(store, 1).append(cut(1))
    save(store, 2).append(cut(2))
    newest = checkpoint_files(tmp_path / "state")[0]
    newest.write_bytes(newest.read_bytes()[:-1])
    for _ in range(2):  # the one who takes them again may be killed, too
        assert cuts_of(open_store()) == [cut(1), cut(2)]
    following = open_store()
    journal, cuts, _ = went_on(following)
    assert cuts == [cut(1), cut(2)]
    journal.append(cut(3))
    save(following, 2).append(cut(4))
    assert cuts_of(open_store()) == [cut(4)]


@pytest.mark.long
@hypothesis_settings(max_examples=50)
@given(steps=st.lists(st.sampled_from("csmk"), max_size=30), damaged=st.integers(0, 2))
def test_whatever_happened_nothing_is_taken_twice_or_left_out(tmp_path_factory, steps, damaged):
    """Cuts, saves and kills in any order: a checkpoint and the cuts to take again are all that was ever taken."""
    folder = tmp_path_factory.mktemp("state")
    with ExitStack() as stack:

        def begin():
            store = stack.enter_context(closing(CheckpointStore(folder, 3)))
            found = store.load()
            journal, cuts, _ = store.begin_journal()
            return store, journal, found, [cut.events for cut in cuts]

        def write(sequence):
            return store.save(replace(checkpoint(sequence), offsets={"events": n_taken}).to_bytes(), sequence)

        n_taken, sequence = 0, 1
        store, *_ = begin()
        journal = write(sequence)  # before anything is taken
        is_whole = True
        for step in [*steps, "k"]:
            if step == "c":
                n_taken += 1
                journal.append(cut(n_taken))
                journal.done()
            elif step == "s":
                sequence += 1
                journal = write(sequence)
            elif step == "m":  # killed, and saved when half of the cuts were taken again
                store, _, found, again = begin()
                half, sequence = len(again) // 2, found.sequence + 1
                offsets = {"events": found.offsets["events"] + half}
                saved = replace(checkpoint(sequence), offsets=offsets).to_bytes()
                journal = store.save(saved, sequence, [cut(number) for number in again[half:]])
            else:
                if is_whole and len(checkpoint_files(folder)) > damaged:
                    is_whole = False
                    for path in checkpoint_files(folder)[:damaged]:
                        path.write_bytes(b"")
                store, journal, found, again = begin()
                sequence = found.sequence
                assert [*range(1, found.offsets["events"] + 1), *again] == list(range(1, n_taken + 1))


@pytest.mark.parametrize(
    "changes",
    [{"sequence": -1}, {"sequence": "1"}, {"offsets": []}, {"counters": None}, {"fingerprint": 3}, {"unheard_of": 1}],
)
def test_a_checkpoint_with_wrong_content_is_passed_over(store, tmp_path, caplog, changes):
    """Its checksum is right: it was not damaged, but written by something else."""
    path = checkpoint_files(tmp_path / "state")[0]
    meta, arrays = snapshot.unpack(path.read_bytes(), "checkpoint")
    path.write_bytes(snapshot.pack("checkpoint", meta | changes, arrays))
    _, found = load_newest(tmp_path / "state")
    assert found.sequence == 3
    assert "passing over a checkpoint" in caplog.text


def test_a_fingerprint_of_an_earlier_version_has_the_names_of_this_one():
    old = replace(checkpoint(1), fingerprint={"model.tau": 0.01, "model.C": 1.0})
    assert Checkpoint.from_bytes(old.to_bytes()).fingerprint == {"model.tol": 0.01, "model.C": 1.0}
