"""Blobs through a compacted topic: a reader has a blob that was published, never an older one, soon the newest."""

import bisect
import json
import random
import time
import tracemalloc
from zlib import crc32

import numpy as np
import pytest
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from streamsvm import LASVM, WarmupScaler
from streamsvm.connectors.logs.embedded import LocalLog
from streamsvm.connectors.logs.transport import OffsetOutOfRange, Record, Unavailable
from streamsvm.connectors.records.models import Trained, pack_model, unpack_model
from streamsvm.connectors.records.published import MAX_CHUNKS, Place, Publisher, Shelf, read_newest
from streamsvm.core.saving import snapshot
from streamsvm.core.saving.snapshot import SnapshotError
from streamsvm.estimators.mixture.mixture import FOR_TWO_CLASSES

TOPIC = "model"
NAME = "p3"
CHUNK = 8  # bytes, in most of these tests


class MemoryLog:
    """One partition that can be compacted, cut and damaged; one reader."""

    def __init__(self):
        self.records = []  # (offset, key, value), offsets rising, with holes
        self.end = 0
        self._position = None

    def produce(self, topic, value, *, key=None, headers=(), partition=None):
        assert topic == TOPIC
        assert partition == 0
        self.records.append((self.end, key, value))
        self.end += 1

    def seek(self, topic, partition, offset):
        if offset > self.end:
            raise OffsetOutOfRange
        self._position = offset

    def release(self, topic, partition):
        self._position = None

    def position(self, topic, partition):
        return self._position

    def poll(self, timeout, limit):
        if self._position is None:
            return []
        first = bisect.bisect_left(self.records, self._position, key=lambda item: item[0])
        items = self.records[first : first + limit]
        self._position = items[-1][0] + 1 if len(items) == limit else self.end
        return [Record(TOPIC, 0, offset, 0, key, value, ()) for offset, key, value in items]

    def start_offsets(self, topic):
        return {0: 0}

    def end_offsets(self, topic):
        return {0: self.end}

    def compact(self, below=None, drop_tombstones=True):
        """As Kafka does: of the records below an offset, keep the last of each key, in their places."""
        below = self.end if below is None else below
        last = {key: offset for offset, key, _ in self.records if offset < below}

        def survives(offset, key, value):
            if offset >= below:
                return True
            return offset == last[key] and not (drop_tombstones and value is None)

        self.records = [item for item in self.records if survives(*item)]

    def truncate(self, n):
        """Lose the last `n` records, as after an unclean election; their offsets will be given again."""
        for _ in range(min(n, len(self.records))):
            self.end = self.records.pop()[0]


class Recorder:
    """Keeps what a publisher produces, to be appended to a log in parts."""

    def __init__(self):
        self.items = []

    def produce(self, topic, value, *, key=None, headers=(), partition=None):
        self.items.append((key, value))


def append(log, items):
    for key, value in items:
        log.produce(TOPIC, value, key=key, partition=0)


def version(ver, epoch=0):
    return {"epoch": epoch, "ver": ver}


def newest(log, shelf=None):
    return read_newest(log, TOPIC, time.monotonic() + 60, shelf)


def newest_blob(log):
    return newest(log)[NAME].blob


def successor(log, chunk_bytes=CHUNK, into=None):
    """Who goes on after what the log has, and writes into it, or into another one."""
    shelf = Shelf()
    newest(log, shelf)
    publisher = Publisher(log if into is None else into, TOPIC, chunk_bytes)
    publisher.resume(shelf.places())
    return publisher


def flipped(data, position, bit):
    changed = bytearray(data)
    changed[position % len(changed)] ^= 1 << bit
    return bytes(changed)


@pytest.fixture
def log():
    return MemoryLog()


# --- anything may happen ----------------------------------------------------------------------------------------------


class Reader:
    """A shelf, and what every reader may rely on."""

    def __init__(self, published):
        self.published = published
        self.shelf = Shelf()
        self.newest = None

    def put(self, record):
        found = self.shelf.put(record)
        if found is None or found.name != NAME:
            return
        its_version = (found.manifest["epoch"], found.manifest["ver"])
        assert found.blob == self.published[its_version]
        assert self.newest is None or its_version > self.newest
        self.newest = its_version


BLOBS = st.binary(max_size=5 * CHUNK) | st.integers(0, 5 * CHUNK).map(bytes)  # the second have chunks in common


class Publication(RuleBasedStateMachine):
    @initialize()
    def begin(self):
        self.log, self.recorder = MemoryLog(), Recorder()
        self.published = {}
        self.follower = Reader(self.published)
        self.position = 0
        self.ver = 0
        self.epoch = 0
        self.zombie = None
        self.clean = None  # what every reader must have: published in one piece, and not damaged since
        self.take_over()

    def make(self, publisher, epoch, blob):
        """The records of a publication, not appended to the log yet, and its version."""
        self.ver += 1
        self.recorder.items = []
        publisher.publish(NAME, blob, version(self.ver, epoch))
        self.published[epoch, self.ver] = blob
        return self.recorder.items, (epoch, self.ver)

    def take_over(self):
        self.epoch += 1
        self.publisher = successor(self.log, into=self.recorder)

    @rule(blob=BLOBS)
    def publish(self, blob):
        items, self.clean = self.make(self.publisher, self.epoch, blob)
        append(self.log, items)

    @rule(blob=BLOBS, n=st.integers(0, 7))
    def kill(self, blob, n):
        items, its_version = self.make(self.publisher, self.epoch, blob)
        append(self.log, items[:n])
        if f"{NAME}/manifest".encode() in dict(items[:n]):
            self.clean = its_version
        self.take_over()

    @rule()
    def become_zombie(self):
        self.zombie = (self.publisher, self.epoch)
        self.take_over()

    @precondition(lambda self: self.zombie)
    @rule(blob=BLOBS, zombies=BLOBS, order=st.randoms(use_true_random=False), is_alone=st.booleans())
    def interleave(self, blob, zombies, order, is_alone):
        queues = [self.make(*self.zombie, zombies)[0]]
        if not is_alone:
            queues.append(self.make(self.publisher, self.epoch, blob)[0])
        while queues := [queue for queue in queues if queue]:
            append(self.log, [order.choice(queues).pop(0)])
        self.clean = None

    @rule(part=st.floats(0, 1), drop_tombstones=st.booleans())
    def compact(self, part, drop_tombstones):
        self.log.compact(round(part * self.log.end), drop_tombstones)

    @precondition(lambda self: self.log.records)
    @rule(index=st.integers(0), position=st.integers(0), bit=st.integers(0, 7), what=st.sampled_from(["key", "value"]))
    def flip(self, index, position, bit, what):
        index %= len(self.log.records)
        offset, key, value = self.log.records[index]
        if what == "key":
            key = flipped(key, position, bit)
        elif value:
            value = flipped(value, position, bit)
        self.log.records[index] = (offset, key, value)
        self.clean = None

    @precondition(lambda self: self.log.records)
    @rule(index=st.integers(0), length=st.integers(0, CHUNK))
    def cut_value(self, index, length):
        index %= len(self.log.records)
        offset, key, value = self.log.records[index]
        self.log.records[index] = (offset, key, value and value[:length])
        self.clean = None

    @rule(n=st.integers(1, 5))
    def truncate(self, n):
        self.log.truncate(n)
        if self.position > self.log.end:
            self.position = 0  # the log says so, and everything is read again
        self.clean = None

    @rule(n=st.integers(1, 5))
    def follow(self, n):
        self.log.seek(TOPIC, 0, self.position)
        for record in self.log.poll(0, n):
            self.follower.put(record)
        self.position = self.log.position(TOPIC, 0)

    @invariant()
    def who_starts_now_has_it(self):
        reader = Reader(self.published)
        self.log.seek(TOPIC, 0, 0)
        for record in self.log.poll(0, len(self.log.records) + 1):
            reader.put(record)
        assert self.clean is None or reader.newest == self.clean

    @invariant()
    def who_follows_has_it(self):
        if self.clean is not None and self.position == self.log.end:
            assert self.follower.newest == self.clean

    def teardown(self):
        """Whatever there was, the next publication is read by all."""
        self.take_over()
        self.publish(b"at last")
        self.follow(len(self.log.records) + 1)
        self.who_starts_now_has_it()
        self.who_follows_has_it()


TestPublication = pytest.mark.long(Publication.TestCase)
TestPublication.settings = hypothesis_settings(max_examples=150, stateful_step_count=30, deadline=None)


# --- one thing at a time ----------------------------------------------------------------------------------------------


def test_a_killed_publisher_is_continued_in_the_same_slot(log):
    for ver in (1, 2):
        successor(log).publish(NAME, bytes([ver]) * 20, version(ver))
    recorder = Recorder()
    killed = successor(log, into=recorder)
    killed.publish(NAME, b"c" * 50, version(3))
    append(log, recorder.items[:5])
    log.compact()
    assert newest_blob(log) == b"\2" * 20, "the other slot is untouched"

    successor(log).publish(NAME, b"d" * 30, version(3))
    log.compact()
    assert newest_blob(log) == b"d" * 30
    keys = {key for _, key, _ in log.records}
    assert keys == {
        *(f"p3/0/{n}".encode() for n in range(4)),
        *(f"p3/1/{n}".encode() for n in range(3)),
        b"p3/manifest",
    }


def test_slots_alternate_and_compaction_keeps_no_garbage(log):
    publisher = Publisher(log, TOPIC, CHUNK)
    for ver, size in enumerate([50, 40, 9, 8, 0, 1]):
        publisher.publish(NAME, bytes(size), version(ver))
        shelf = Shelf()
        assert newest(log, shelf)[NAME].manifest["slot"] == ver % 2
    assert shelf.places() == {NAME: Place(slot=1, lengths=(0, 1))}
    log.compact()
    assert [key for _, key, _ in log.records] == [b"p3/1/0", b"p3/manifest"], "slot 0 holds an empty blob"
    assert newest_blob(log) == bytes(1)


def test_the_manifest_says_all(log):
    meta = {**version(7, epoch=2), "offsets": {"events-3": 1042}, "created": 1.5}
    Publisher(log, TOPIC, CHUNK).publish(NAME, b"0123456789", meta)
    manifest = json.loads(log.records[-1][2])
    assert manifest.pop("check")
    assert manifest == {
        **meta,
        "name": NAME,
        "slot": 0,
        "chunks": 2,
        "bytes": 10,
        "sha256": "84d89877f0d4041efb6bf91a16f0248f2fd573e6af05c19f96bedb9f882f7882",
    }
    assert newest(log)[NAME].manifest == manifest


def test_names_do_not_meddle(log):
    publisher = Publisher(log, TOPIC, CHUNK)
    for ver in range(3):
        for name in ("p3", "k:00ff"):
            publisher.publish(name, f"{name} {ver} is longer than a chunk".encode(), version(ver))
    log.compact()
    assert {name: found.blob[:8] for name, found in newest(log).items()} == {"p3": b"p3 2 is ", "k:00ff": b"k:00ff 2"}


def test_a_reader_is_told_each_version_once_and_no_older_one(log):
    zombie = Publisher(log, TOPIC, CHUNK)
    zombie.publish(NAME, b"old", version(100, epoch=1))
    successor(log).publish(NAME, b"new", version(3, epoch=2))
    zombie.publish(NAME, b"old again", version(200, epoch=1))
    shelf = Shelf()
    log.seek(TOPIC, 0, 0)
    records = log.poll(0, 100)
    found = [snapshot.blob for record in records + records if (snapshot := shelf.put(record))]
    assert found == [b"old", b"new"]
    assert shelf.refused == 0, "an older version is nothing wrong"


def test_a_manifest_leaves_the_other_slot_to_whoever_is_writing_there(log):
    zombie = Publisher(log, TOPIC, CHUNK)
    zombie.publish(NAME, b"a", version(1, epoch=1))
    recorder = Recorder()
    heir = successor(log, into=recorder)
    zombie.publish(NAME, b"b", version(2, epoch=1))
    heir.publish(NAME, b"in two chunks", version(2, epoch=2))
    append(log, recorder.items[:1])
    zombie.publish(NAME, b"c", version(3, epoch=1))
    append(log, recorder.items[1:])
    assert newest_blob(log) == b"in two chunks"


def test_a_damaged_version_does_not_shut_out_the_next(log):
    publisher = Publisher(log, TOPIC, CHUNK)
    publisher.publish(NAME, b"a", version(1))
    offset, key, value = log.records[-1]
    log.records[-1] = (offset, key, value.replace(b'"ver":1', b'"ver":3'))
    publisher.publish(NAME, b"b", version(2))
    assert newest_blob(log) == b"b"


def test_a_manifest_counts_as_the_last_though_it_is_torn(log):
    """Compaction has removed all others, so the slot that it names must not be what the next one is written to."""
    publisher = Publisher(log, TOPIC, CHUNK)
    publisher.publish(NAME, b"a", version(1))
    publisher.publish(NAME, b"b", version(2))
    del log.records[2]  # the chunk of the second
    shelf = Shelf()
    assert newest(log, shelf)[NAME].blob == b"a"
    assert shelf.refused == 1
    assert shelf.places() == {NAME: Place(1, (1, 0))}


def of(fields):
    """A manifest with a right checksum."""
    text = json.dumps(fields, sort_keys=True, separators=(",", ":"))
    return json.dumps({**fields, "check": crc32(text.encode())}).encode()


RIGHT = {"name": NAME, "slot": 0, "chunks": 0, "bytes": 0, "epoch": 0, "ver": 1}
RIGHT["sha256"] = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


@pytest.mark.parametrize(
    "record",
    [
        (None, b""),
        (b"", b""),
        (b"p3", b""),
        (b"\xff/0/0", b""),
        (b"p3/2/0", b""),
        (b"p3/0/-1", b""),
        (b"p3/0/00", b""),
        (b"p3/0/1000", b""),
        ("p3/0/٣".encode(), b""),
        (b"/0/0", b""),
        (b"a/b/0/0", b""),
        (b"x" * 300 + b"/0/0", b""),
        (b"p3/manifest", b""),
        (b"p3/manifest", b"\xff\xfe"),
        (b"p3/manifest", b"[]"),
        (b"p3/manifest", b"{}"),
        (b"p3/manifest", b"[" * 100_000),
        (b"p3/manifest", b'{"a":' * 100_000),
        (b"p3/manifest", b'{"check": NaN, "a": 1e999}'),
        (b"p3/manifest", b'{"a": ' + b"9" * 5000 + b"}"),
        (b"p3/manifest", of({**RIGHT, "name": "p4"})),
        (b"p3/manifest", of({**RIGHT, "slot": 2})),
        (b"p3/manifest", of({**RIGHT, "slot": False})),
        (b"p3/manifest", of({**RIGHT, "chunks": -1})),
        (b"p3/manifest", of({**RIGHT, "chunks": 10**9})),
        (b"p3/manifest", of({**RIGHT, "sha256": 3})),
        (b"p3/manifest", of({**RIGHT, "ver": 1.0})),
        (b"p3/manifest", of({**RIGHT, "epoch": None})),
        (b"p3/manifest", of({**RIGHT, "ver": True})),
        (b"p3/manifest", of({**RIGHT, "ver": -1})),
        (b"p3/manifest", of({**RIGHT, "ver": 1 << 63})),
        (b"p3/manifest", of({**RIGHT, "ver": 10**4300 - 1})),
        (b"p3/manifest", of({**RIGHT, "epoch": -(10**30)})),
    ],
    ids=lambda record: repr(record)[:40],
)
def test_garbage_is_refused_and_does_no_harm(record, caplog):
    shelf = Shelf()
    assert shelf.put(Record(TOPIC, 0, 5, 0, *record, ())) is None
    assert shelf.refused == 1
    assert "model-0: refusing" in caplog.text
    assert "at offset 5" in caplog.text
    assert len(caplog.text) < 1000
    assert shelf.put(Record(TOPIC, 0, 6, 0, b"p3/manifest", of(RIGHT), ())).blob == b""


@pytest.mark.parametrize("drop_tombstones", [None, False, True])
def test_what_was_withdrawn_is_gone_until_it_is_published_again(drop_tombstones):
    log, shelf = MemoryLog(), Shelf()
    publisher = successor(log)
    publisher.publish(NAME, b"x" * 30, version(1))
    publisher.publish(NAME, b"y" * 20, version(2))
    publisher.publish("other", b"z", version(2))
    assert newest(log, shelf)[NAME].blob == b"y" * 20
    publisher.withdraw(NAME)
    publisher.withdraw(NAME)
    publisher.withdraw("unknown")
    assert log.end == 4 + 1 + 3 + 1 + 2 + (1 + 4 + 3)
    if drop_tombstones is not None:
        log.compact(drop_tombstones=drop_tombstones)
    fresh = Shelf()
    assert newest(log, fresh).keys() == {"other"}
    assert fresh.places().keys() == {"other"}
    assert (fresh.refused, shelf.refused) == (0, 0)
    publisher.publish(NAME, b"again", version(3))
    assert newest_blob(log) == b"again"
    assert newest(log, shelf)[NAME].blob == b"again"


def test_a_withdrawal_that_was_cut_short_is_made_again():
    log, recorder = MemoryLog(), Recorder()
    successor(log).publish(NAME, b"x" * 30, version(1))
    publisher = Publisher(recorder, TOPIC, CHUNK)
    publisher.resume({NAME: Place(0, (4, 0))})
    publisher.withdraw(NAME)
    append(log, recorder.items[:2])
    log.compact()
    assert newest(log) == {}, "a publication that lacks its first chunks is refused"
    successor(log).withdraw(NAME)
    log.compact()
    assert log.records == []


def test_a_blob_may_be_too_large(log):
    publisher = Publisher(log, TOPIC, 1)
    with pytest.raises(ValueError, match=f"at most {MAX_CHUNKS}"):
        publisher.publish(NAME, bytes(MAX_CHUNKS + 1), version(1))
    publisher.publish(NAME, bytes(MAX_CHUNKS), version(1))
    assert newest_blob(log) == bytes(MAX_CHUNKS)


def test_used_chunks_take_no_memory():
    class Through:
        """A log that is read as it is written, and keeps nothing."""

        def produce(self, topic, value, *, key=None, headers=(), partition=None):
            shelf.put(Record(TOPIC, 0, 0, 0, key, value, ()))

    shelf, size = Shelf(), 5_000_000
    publisher = Publisher(Through(), TOPIC)
    blob = random.Random(1).randbytes(size)
    tracemalloc.start()
    try:
        for ver in range(6):
            publisher.publish(NAME, blob, version(ver))
        current, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert current < size / 10
    assert peak < 3 * size, "the publisher's chunks, which are the shelf's here, and the assembled blob"


# --- reading to the end -----------------------------------------------------------------------------------------------


def test_a_hole_at_the_end_does_not_hang(log):
    publisher = Publisher(log, TOPIC, CHUNK)
    for ver, size in enumerate([30, 30, 1]):
        publisher.publish(NAME, bytes(size), version(ver))
    log.compact()
    assert log.records[-1][0] + 1 < log.end, "the tombstones are gone"
    assert newest_blob(log) == bytes(1)


def test_an_empty_topic_has_no_snapshots(log, tmp_path):
    assert newest(log) == {}, "a publication that lacks its first chunks is refused"
    with LocalLog(tmp_path / "log") as local:
        assert newest(local) == {}


def test_time_is_limited_and_the_partition_released(log):
    Publisher(log, TOPIC).publish(NAME, b"blob", version(1))
    log.poll = lambda timeout, limit: []
    with pytest.raises(Unavailable, match="'model'"):
        read_newest(log, TOPIC, time.monotonic() + 0.05)
    assert log.position(TOPIC, 0) is None


def test_five_megabytes_through_the_embedded_log(tmp_path):
    random_bytes = random.Random(0).randbytes
    blobs = [random_bytes(n) for n in (5_000_000, 6_500_000, 900_000, 900_001)]
    for ver, blob in enumerate(blobs):
        with LocalLog(tmp_path / "log") as log:  # another process each time
            publisher = successor(log, chunk_bytes=900_000)
            publisher.publish(NAME, blob, version(ver))
            log.flush()
        with LocalLog(tmp_path / "log") as log:
            assert newest_blob(log) == blob


# --- models -----------------------------------------------------------------------------------------------------------


def learned(algorithm, n=200):
    rng = np.random.default_rng(0)
    scaler, model = WarmupScaler(warmup=50), FOR_TWO_CLASSES[algorithm]()
    for x in rng.normal(size=(n, 3)) * [1, 10, 100]:
        named = dict(zip("abc", x.tolist(), strict=True))
        scaler.learn_one(named)
        model.learn_one(scaler.transform_one(named), bool(x[0] + x[1] / 10 > 0))
    return model, scaler


@pytest.mark.parametrize("algorithm", FOR_TWO_CLASSES)
def test_a_model_comes_back_bit_for_bit(algorithm):
    model, scaler = learned(algorithm, n=100)
    blob = pack_model(Trained(model, scaler))
    assert blob == pack_model(Trained(model, scaler))
    served = unpack_model(blob)
    assert served.model.digest() == model.digest()
    for x in np.random.default_rng(1).normal(size=(20, 3)):
        named = dict(zip("abd", x.tolist(), strict=True))
        assert served.made_by.transform_one(named) == scaler.transform_one(named)
        assert served.model.predict_proba_one(named) == model.predict_proba_one(named)


def test_a_new_model_without_scaler():
    served = unpack_model(pack_model(Trained(LASVM())))
    assert served.made_by is None
    assert served.model.n_members == 0


def spoiled(change):
    """A packed model whose inside was changed by somebody who knows how to make it look right."""
    model, scaler = learned("lasvm", n=60)
    meta, arrays = snapshot.unpack(model.to_bytes(), "LASVM")
    header = {"algorithm": "lasvm", "meta": {}}
    change(header, meta, arrays)
    blobs = {"model": snapshot.pack("LASVM", meta, arrays), "scaler": scaler.to_bytes()}
    arrays = {name: np.frombuffer(blob, np.uint8) for name, blob in blobs.items() if name != header.pop("without", "")}
    return snapshot.pack("served model", header, arrays)


@pytest.mark.parametrize(
    "change",
    [
        lambda header, meta, arrays: header.update(algorithm="lasvm-9"),
        lambda header, meta, arrays: header.update(algorithm="full"),
        lambda header, meta, arrays: header.pop("algorithm"),
        lambda header, meta, arrays: header.update(without="model"),
        lambda header, meta, arrays: meta["parameters"].update(colour="red"),
        lambda header, meta, arrays: meta["parameters"].update(C=-1.0),
        lambda header, meta, arrays: meta.pop("features"),
        lambda header, meta, arrays: arrays.pop("alpha"),
        lambda header, meta, arrays: arrays.update(alpha=arrays["alpha"][:-1]),
        lambda header, meta, arrays: arrays["alpha"].fill(np.nan),
    ],
)
def test_an_unusable_model_is_refused(change):
    unpack_model(spoiled(lambda header, meta, arrays: None))
    with pytest.raises(SnapshotError):
        unpack_model(spoiled(change))


def test_a_damaged_model_is_refused():
    blob = pack_model(Trained(*learned("lasvm", n=60)))
    for damaged in (b"", blob[:-1], flipped(blob, 0, 0), flipped(blob, len(blob) // 2, 3), b"not a model" * 50):
        with pytest.raises(SnapshotError):
            unpack_model(damaged)
