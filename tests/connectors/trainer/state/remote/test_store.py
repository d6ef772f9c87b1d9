"""State on a topic or in an object store: no disk is needed, and only what the last owner has written counts."""

import itertools
import shutil
from contextlib import ExitStack, closing, suppress
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from streamsvm.connectors.logs.embedded import EmbeddedBackend, LocalLog
from streamsvm.connectors.logs.transport import AccessDenied, Record, TakenOver, Unavailable
from streamsvm.connectors.settings.model import ModelSettings
from streamsvm.connectors.trainer.state.checkpoint import Checkpoint, CheckpointStore, checkpoint_files
from streamsvm.connectors.trainer.state.journal import Cut, Kind
from streamsvm.connectors.trainer.state.model_files import model_files
from streamsvm.connectors.trainer.state.models import KeyedModels, ModelKind
from streamsvm.connectors.trainer.state.remote import ledger as ledger_module
from streamsvm.connectors.trainer.state.remote.contents import Contents
from streamsvm.connectors.trainer.state.remote.ledger import Ledger
from streamsvm.connectors.trainer.state.remote.objects import ObjectPlace
from streamsvm.connectors.trainer.state.remote.places import TopicPlace
from streamsvm.connectors.trainer.state.remote.store import RemoteStore

pytestmark = pytest.mark.usefixtures("no_waiting_for_the_disk")


def checkpoint(sequence):
    blobs = {"model": b"model" * sequence}
    return Checkpoint(sequence, {"events": 64 * sequence, "labels": 8}, {"model.C": 1.0}, {}, blobs, {})


def cut(number):
    return Cut(Kind.CUT, 10 * number, number)


def save(store, sequence):
    return store.save(checkpoint(sequence).to_bytes(), sequence)


def topic_places(folder, opened):
    """Every owner writes to one log: on an embedded log, two processes could not."""
    log = opened.enter_context(LocalLog(folder / "log", segment_bytes=2000))
    trim = partial(EmbeddedBackend(folder / "log", 2000).trim, "state", 0)
    return lambda: TopicPlace(log, "state", 0, lambda: LocalLog(folder / "log"), trim)


def object_places(folder, opened):
    memory = pytest.importorskip("obstore").store.MemoryStore()
    return lambda: ObjectPlace(memory, "p0", "partition 0 of 'memory'")


@pytest.fixture(params=[topic_places, object_places], ids=["topic", "objects"])
def place(request, tmp_path):
    """Opens the place that all owners share."""
    with ExitStack() as opened:
        yield request.param(tmp_path, opened)


@pytest.fixture
def own(tmp_path, place):
    """Takes the partition over, on a machine of its own or a named one; `at` is a place that is open already."""
    machines, opened = itertools.count(), ExitStack()

    def own(machine=None, wait=None, keep=1, at=None):
        folder = tmp_path / f"machine-{next(machines) if machine is None else machine}" / "p0"
        return opened.enter_context(closing(RemoteStore(folder, 3, Ledger(at or place(), wait or pytest.fail, keep))))

    with opened:
        yield own


def begin(store):
    """What the next owner begins with: sequence of the checkpoint, and the cuts to repeat."""
    found = store.load()
    _, cuts, _ = store.begin_journal()
    return found and found.sequence, cuts


def test_the_next_owner_goes_on_with_an_empty_disk(own):
    first = own()
    assert begin(first) == (None, [])
    save(first, 1)
    journal = save(first, 2)
    for number in (1, 2):
        journal.append(cut(number))
        journal.done()
    first.close()
    assert begin(own()) == (2, [cut(1), cut(2)])


def test_the_cuts_to_repeat_go_from_owner_to_owner(own):
    first = own()
    begin(first)
    save(first, 1).append(cut(1))
    second = own()
    assert begin(second) == (1, [cut(1)])  # killed before it does anything
    third = own()
    assert third.load().sequence == 1
    journal, cuts, _ = third.begin_journal()
    assert cuts == [cut(1)]
    journal.retry()
    journal.done()
    journal.append(cut(2))
    assert begin(own()) == (1, [cut(1), cut(2)])


def test_the_file_of_an_owner_that_comes_back_is_used_if_it_has_more(own, place, monkeypatch):
    """The last line may not have reached the ledger: the owner was killed first."""
    here = place()
    first = own("a", at=here)
    begin(first)
    journal = save(first, 1)
    journal.append(cut(1))
    with monkeypatch.context() as patch:
        patch.setattr(here, "append", lambda *_: None)
        journal.append(cut(2))
    assert begin(own("a")) == (1, [cut(1), cut(2)])


def test_what_an_owner_that_was_replaced_writes_does_not_count(own):
    first = own()
    begin(first)
    journal = save(first, 1)
    second = own()
    assert begin(second)[0] == 1
    with suppress(TakenOver):  # An object store tells so at once.
        journal.append(cut(1))  # It has not heard of the second one.
    with pytest.raises(TakenOver):
        save(first, 2)
    assert begin(own()) == (1, [])
    with pytest.raises(TakenOver):
        save(second, 2)


def test_an_owner_that_was_replaced_long_ago_hears_of_it(own, monkeypatch):
    """Its successor has removed the records between them."""
    monkeypatch.setattr(ledger_module, "CHUNK_BYTES", 100)
    first = own()
    begin(first)
    save(first, 1)
    second = own()
    begin(second)
    for sequence in range(2, 20):
        save(second, sequence)
    with pytest.raises(TakenOver):
        save(first, 2)
    assert begin(own())[0] == 19


def test_a_replaced_owner_removes_nothing(own, place):
    here = place()
    first = own(at=here)
    begin(first)
    save(first, 1)
    look, is_late = first._ledger.require_ownership, iter([False])
    first._ledger.require_ownership = lambda epoch: look(epoch) if next(is_late, True) else None
    removed = []
    here.trim = removed.append
    second = own()  # while the first one writes a checkpoint: it has looked before
    begin(second)
    with pytest.raises(TakenOver):
        save(first, 2)
    assert removed == []
    assert begin(own())[0] == 1


@pytest.mark.parametrize("number", ["9" * 5000, "1000000", "\u0663"])
def test_numbers_that_no_owner_writes_are_passed_over(own, place, number):
    """An epoch of seven digits would make names of files that nobody finds again."""
    save(own(), 1)
    at = place()
    at.end()
    for _ in at.records(0):
        pass
    for key in (f"claim {number} 00", f"chunk {number} 1 0", f"journal {number} 1 0 1"):
        at.append(key.encode(), b"")
        at.flush()
    later = own()
    assert later.epoch == 2
    assert begin(later)[0] == 1


def test_of_two_that_claim_at_once_the_first_one_owns(own, monkeypatch):
    claims = []
    claim = Ledger.claim

    def late(ledger, contents, epoch, owner):
        if not claims:  # Another one reads the same, and is faster.
            claims.append(epoch)
            claims.append(own().epoch)
        return claim(ledger, contents, epoch, owner)

    begin(own())
    monkeypatch.setattr(Ledger, "claim", late)
    second = own()
    assert claims[0] == claims[1] == second.epoch - 1


def test_a_checkpoint_that_is_not_whole_does_not_count(own, place, monkeypatch):
    monkeypatch.setattr(ledger_module, "CHUNK_BYTES", 100)
    here = place()
    store = own(at=here)
    begin(store)
    save(store, 1)
    append = here.append

    def killed(key, value):
        if key.startswith(b"checkpoint"):
            here.flush()  # what came before it
            raise KeyboardInterrupt
        append(key, value)

    monkeypatch.setattr(here, "append", killed)
    with pytest.raises(KeyboardInterrupt):
        save(store, 2)
    assert begin(own())[0] == 1


def test_the_ledger_holds_little_more_than_a_checkpoint(own, place, monkeypatch):
    monkeypatch.setattr(ledger_module, "CHUNK_BYTES", 100)
    store = own()
    begin(store)
    sizes = []
    for sequence in range(1, 30):
        journal = save(store, sequence)
        journal.append(cut(sequence))
        sizes.append(sum(record.nbytes for record in place().records(0)))
    content = len(checkpoint(29).to_bytes())
    assert max(sizes) < 2 * content + 3 * 2000
    assert begin(own()) == (29, [cut(29)])


def test_a_ledger_that_cannot_be_trimmed_only_grows(own, place, caplog):
    def trim(offset):
        raise AccessDenied("no right to delete")

    here = place()
    here.trim = trim
    store = own(at=here)
    begin(store)
    for sequence in (1, 2, 3):
        save(store, sequence)
    assert caplog.text.count("no right to delete") == 1
    assert begin(own())[0] == 3


def test_a_folder_of_checkpoints_moves_to_the_ledger(tmp_path, own):
    with closing(CheckpointStore(tmp_path / "machine-old" / "p0", 3)) as store:
        store.load()
        store.begin_journal()
        store.save(checkpoint(1).to_bytes(), 1).append(cut(1))
    moved = own("old")
    assert begin(moved) == (1, [cut(1)])
    save(moved, 2)
    assert begin(own())[0] == 2


def test_a_stale_cache_is_replaced(tmp_path, own):
    first = own("a")
    begin(first)
    save(first, 1)
    second = own("b")
    begin(second)
    for sequence in (2, 3):
        save(second, sequence)
    back = own("a")
    assert begin(back)[0] == 3
    assert len(checkpoint_files(tmp_path / "machine-a" / "p0")) == 1
    shutil.rmtree(tmp_path / "machine-b")


def test_while_nothing_is_durable_the_owner_waits_or_gives_up(own, place, monkeypatch):
    reasons, here = [], place()

    def wait(reason):
        reasons.append(reason)
        if len(reasons) > 2:
            raise Unavailable(reason)

    store = own(wait=wait, at=here)
    begin(store)
    flush, failures = here.flush, iter(range(2))

    def failing():
        if next(failures, None) is not None:
            raise Unavailable("no broker")
        flush()

    monkeypatch.setattr(here, "flush", failing)
    save(store, 1)
    assert reasons == ["no broker", "no broker"]
    failures = iter(range(1))
    with pytest.raises(Unavailable):
        save(store, 2)


# --- with transactions ------------------------------------------------------------------------------------------------


def test_while_the_place_cannot_be_asked_the_owner_waits(own, place, monkeypatch):
    reasons, here = [], place()
    store = own(wait=reasons.append, at=here)
    end, failures = here.end, iter([True, True])

    def fail():
        if next(failures, False):
            raise Unavailable("away")
        return end()

    monkeypatch.setattr(here, "end", fail)
    save(store, 1).close()
    assert reasons == ["away", "away"]


def test_the_checkpoint_of_a_transaction_that_was_given_up_is_rolled_back(own):
    first = own(keep=2)
    begin(first)
    save(first, 1)
    save(first, 2).append(cut(2))
    save(first, 3)
    second = own(keep=2)
    second.roll_back((first.epoch, 2))
    assert begin(second) == (2, [cut(2)])
    third = own(keep=2)  # The second one was killed before it did anything.
    third.roll_back((first.epoch, 2))
    assert begin(third) == (2, [cut(2)])
    save(third, 3)
    fourth = own(keep=2)
    fourth.roll_back((first.epoch, 2))  # That transaction was given up, too.
    assert begin(fourth) == (2, [cut(2)])
    save(fourth, 3)
    fifth = own(keep=2)
    fifth.roll_back((fourth.epoch, 3))
    assert begin(fifth) == (3, [])


def test_with_transactions_the_ledger_holds_two_checkpoints(own, place):
    store = own(keep=2)
    begin(store)
    for sequence in range(1, 10):
        save(store, sequence)
    keys = [record.key for record in place().records(0)]
    assert 2 <= sum(key.startswith(b"checkpoint") for key in keys) <= 5  # an embedded log removes whole files only


# --- models of keys ---------------------------------------------------------------------------------------------------


class Keyed:
    """Models of keys whose trainer saves as a partition does; model K has learned `lessons[K]` examples."""

    def __init__(self, store):
        self.store = store
        found = store.load()
        self.models = KeyedModels(ModelKind(ModelSettings(C=10.0)), store.folder, store.epoch, 2, 3, 1000)
        if found:
            self.models.restore(found.arrays)
        store.begin_journal()
        self.sequence = found.sequence if found else 0

    def learn(self, key, number):
        x = {"a": float(number), "b": float(number % 3)}
        self.models.to_learn(key).learn_many([x], np.array([number % 2 == 0]), w=np.ones(1), ids=np.array([number]))

    def save(self):
        self.models.leave(self.store.crowded)
        arrays = {name: array.copy() for name, array in self.models.save().items()}
        self.sequence += 1
        saved = Checkpoint(self.sequence, {"events": 0}, {}, {}, {"rest": bytes(500)}, arrays)
        self.store.save(saved.to_bytes(), self.sequence)
        self.models.remove_old()


@pytest.mark.parametrize("keep", [1, 2])
def test_models_of_keys_follow_their_checkpoint_to_an_empty_disk(own, keep):
    trainer = Keyed(own(keep=keep))
    for number in range(30):
        trainer.learn(b"%d" % (number % 7), number)
        if number % 4 == 3:
            trainer.save()
            expected = trainer.models.digest()
        if number % 10 == 9:  # killed, in the midst of a file
            trainer = Keyed(own(keep=keep))
            assert trainer.models.digest() == expected


def test_a_partition_s_own_models_of_keys_go_on_in_a_ledger(own, tmp_path):
    """A trainer changes from state.store = "dir"."""
    with closing(CheckpointStore(tmp_path / "machine-a" / "p0", 3)) as store:
        before = Keyed(store)
        for number in range(12):
            before.learn(b"%d" % number, number)
            before.save()
        expected = before.models.digest()
    trainer = Keyed(own("a"))
    assert trainer.models.digest() == expected
    trainer.save()
    assert Keyed(own()).models.digest() == expected


@pytest.mark.parametrize("keep", [1, 2])
def test_models_that_learn_no_more_do_not_keep_the_ledger_from_being_emptied(own, place, keep):
    """One key of many goes on for long, through many restarts: what all need is a part of the ledger, not a crumb."""
    trainer = Keyed(own(keep=keep))
    for number in range(20):
        trainer.learn(b"%d" % number, number)
    trainer.save()
    expected = [trainer.models.trained(b"%d" % number).model.digest() for number in range(20)]
    held, sizes = sum(path.stat().st_size for path in model_files(trainer.store.folder)), []
    for number in range(60):
        trainer.learn(b"busy", number)
        trainer.save()
        if number % 7 == 6:
            trainer = Keyed(own(keep=keep))
        sizes.append(sum(record.nbytes for record in place().records(0)))
    assert max(sizes[30:]) < 1.3 * max(sizes[:30])
    assert max(sizes) < 8 * held
    models = Keyed(own(keep=keep)).models
    assert [models.trained(b"%d" % number).model.digest() for number in range(20)] == expected


# --- what the records may be ------------------------------------------------------------------------------------------


@hypothesis_settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.binary(max_size=30), st.one_of(st.none(), st.binary(max_size=20))), max_size=8))
def test_any_records_are_read(records):
    contents = Contents()
    for offset, (key, value) in enumerate(records):
        contents.put(Record("state", 0, offset, 0, key, value, ()))
    assert not contents.checkpoints
    contents.journals()


@pytest.mark.parametrize("manifest", [b"", b"[]", b'{"chunks": 1}', b'{"chunks": "x", "sha256": ""}', b'{"chunks": 9}'])
def test_a_damaged_manifest_is_passed_over(manifest, caplog):
    contents = Contents()
    for key, value in ((b"chunk 1 1 0", b"a"), (b"checkpoint 1 1", manifest), (b"something", b""), (None, None)):
        contents.put(Record("state", 0, 0, 0, key, value, ()))
    assert not contents.checkpoints
    assert "passing over checkpoint 1 of epoch 1" in caplog.text
