"""The embedded log: what is appended comes back, and damage is told from an unfinished record."""

import os
import struct
import subprocess
import sys
import time
from contextlib import suppress
from itertools import pairwise
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamsvm.connectors.logs.embedded import LocalLog
from streamsvm.connectors.logs.segments import LogCorruption
from streamsvm.connectors.logs.transport import Committed, OffsetOutOfRange
from streamsvm.connectors.runtime.folders import AlreadyInUse


def fill(folder, n, segment_bytes=16 << 20, topic="events"):
    with LocalLog(folder, segment_bytes) as log:
        for i in range(n):
            log.produce(topic, f"value {i}".encode(), key=str(i).encode())
        log.flush()


def read_all(folder, offset=0, topic="events", limit=7):
    with LocalLog(folder) as log:
        log.seek(topic, 0, offset)
        records = []
        while batch := log.poll(0, limit):
            records += batch
        return records


def segments(folder, topic="events"):
    return sorted((folder / topic / "0").glob("*.log"))


def damage(path, position, xor=0x10):
    data = bytearray(path.read_bytes())
    data[position] ^= xor
    path.write_bytes(bytes(data))


@given(
    records=st.lists(
        st.tuples(
            st.none() | st.binary(max_size=20),
            st.none() | st.binary(max_size=300),
            st.lists(st.tuples(st.text(max_size=5), st.binary(max_size=5)), max_size=3).map(tuple),
        ),
        max_size=30,
    ),
    segment_bytes=st.integers(1, 2000),
    limit=st.integers(1, 9),
)
def test_what_is_produced_comes_back_in_order(tmp_path_factory, records, segment_bytes, limit):
    folder = tmp_path_factory.mktemp("log")
    with LocalLog(folder, segment_bytes) as log:
        for key, value, headers in records:
            log.produce("events", value, key=key, headers=headers)
        assert log.end_offsets("events").get(0, 0) == len(records)
    found = read_all(folder, limit=limit)
    assert [(r.key, r.value, r.headers) for r in found] == records
    assert [r.offset for r in found] == list(range(len(records)))


def test_segments_roll_by_size_and_are_named_by_offset(tmp_path):
    fill(tmp_path, 100, segment_bytes=1000)
    paths = segments(tmp_path)
    assert len(paths) > 3
    assert all(path.stat().st_size <= 1000 for path in paths)
    assert paths[0].name == "00000000000000000000.log"
    assert [int(b.stem) for _, b in pairwise(paths)] == [read_all(tmp_path, int(p.stem))[0].offset for p in paths[1:]]


@pytest.mark.parametrize("offset", [0, 1, 37, 99, 100])
def test_seek_goes_to_an_offset(tmp_path, offset):
    fill(tmp_path, 100, segment_bytes=1000)
    assert [r.offset for r in read_all(tmp_path, offset)] == list(range(offset, 100))


def test_seek_outside_the_log_is_refused(tmp_path):
    fill(tmp_path, 100, segment_bytes=1000)
    with LocalLog(tmp_path) as log:
        with pytest.raises(OffsetOutOfRange, match=r"offset 101 .* ends at 100"):
            log.seek("events", 0, 101)
        with pytest.raises(OffsetOutOfRange, match=r"offset 1 .* ends at 0"):
            log.seek("nothing", 0, 1)
        segments(tmp_path)[0].unlink()
        with pytest.raises(OffsetOutOfRange, match=r"offset 0 .* begins at"):
            log.seek("events", 0, 0)


def test_partitions_are_apart(tmp_path):
    with LocalLog(tmp_path) as log:
        log.produce("events", b"a", partition=0)
        log.produce("events", b"b", partition=2)
        log.produce("events", b"c", partition=2)
        assert log.end_offsets("events") == {0: 1, 2: 2}
        log.seek("events", 2, 1)
        assert [(r.partition, r.offset, r.value) for r in log.poll(0, 10)] == [(2, 1, b"c")]


@pytest.mark.parametrize("topic", ["", ".", "..", "a/b", "a b", "é", "x" * 201])
def test_topic_names_are_checked(tmp_path, topic):
    with LocalLog(tmp_path) as log, pytest.raises(ValueError, match="topic"):
        log.produce(topic, b"")
    assert not any(tmp_path.iterdir())


def test_a_reader_follows_a_writer(tmp_path):
    """Before the topic exists, across rolled segments, and to the end again and again."""
    with LocalLog(tmp_path, segment_bytes=100) as writer, LocalLog(tmp_path) as reader:
        reader.seek("events", 0, 0)
        assert reader.poll(0, 10) == []
        for i in range(30):
            writer.produce("events", b"%d" % i)
            assert [r.value for r in reader.poll(0, 10)] == [b"%d" % i]
            assert reader.poll(0, 10) == []


@pytest.mark.parametrize("n_partitions", [1, 3, 8])
def test_a_key_has_one_partition_and_keys_have_many(tmp_path, n_partitions):
    with LocalLog(tmp_path) as log:
        log.create("events", n_partitions)
        for i in range(200):
            log.produce("events", b"", key=b"%d" % (i % 50))
        assert log.end_offsets("events").keys() == set(range(n_partitions))
        for number in range(n_partitions):
            log.seek("events", number, 0)
        homes = {}
        for record in log.poll(0, 1000):
            homes.setdefault(record.key, set()).add(record.partition)
    assert all(len(home) == 1 for home in homes.values())
    assert len(set().union(*homes.values())) == n_partitions


def test_a_topic_that_is_made_is_empty_and_keeps_what_it_has(tmp_path):
    with LocalLog(tmp_path) as log:
        assert log.end_offsets("events") == log.start_offsets("events") == {}
        log.create("events", 2)
        assert log.end_offsets("events") == log.start_offsets("events") == {0: 0, 1: 0}
        log.produce("events", b"", partition=1)
        log.create("events", 3)
        assert log.end_offsets("events") == {0: 0, 1: 1, 2: 0}


class Owner:
    """Takes note of what it is told."""

    def __init__(self):
        self.told = []

    def assigned(self, partitions):
        self.told.append(partitions)


def test_a_subscriber_has_all_partitions(tmp_path):
    owner = Owner()
    with LocalLog(tmp_path) as log:
        log.subscribe("events", owner)  # before there is a topic
        log.create("events", 11)
        log.subscribe("events", owner)
    assert owner.told == [[0], list(range(11))]


def test_a_paused_partition_is_passed_over(tmp_path):
    with LocalLog(tmp_path) as log:
        for number in (0, 1):
            for i in range(4):
                log.produce("events", b"%d" % i, partition=number)
            log.seek("events", number, 0)
        log.pause("events", 0)
        assert {record.partition for record in log.poll(0, 3)} == {1}
        log.resume("events", 0)
        assert [record[1:3] for record in log.poll(0, 100)] == [(0, 0), (0, 1), (0, 2), (0, 3), (1, 3)]
        log.pause("events", 0)
        log.seek("events", 0, 2)  # which begins anew
        assert [record[1:3] for record in log.poll(0, 100)] == [(0, 2), (0, 3)]
        log.release("events", 0)
        log.produce("events", b"", partition=0)
        assert log.poll(0, 100) == []


def test_a_position_follows_and_the_end_is_known_once_it_was_met(tmp_path):
    fill(tmp_path, 5)
    with LocalLog(tmp_path) as log:
        log.seek("events", 0, 1)
        assert log.position("events", 0) == 1 < log.known_end("events", 0)
        assert len(log.poll(0, 2)) == 2
        assert log.position("events", 0) == 3 < log.known_end("events", 0)
        assert len(log.poll(0, 10)) == 2
        assert log.position("events", 0) == log.known_end("events", 0) == 5
        fill(tmp_path, 1)
        log.poll(0, 10)
        assert log.position("events", 0) == log.known_end("events", 0) == 6


def test_commits_are_kept_by_group_and_partition(tmp_path):
    with LocalLog(tmp_path, group="one") as log, LocalLog(tmp_path, group="two") as other:
        log.create("events", 3)
        assert log.committed("events") == log.committed("nothing") == {}
        log.commit({("events", 0): Committed(7, "3:4"), ("events", 2): Committed(1)})
        log.commit({("events", 0): Committed(9, "3:5")})
        other.commit({("events", 0): Committed(1, "")})
        assert log.committed("events") == {0: Committed(9, "3:5"), 2: Committed(1, "")}
        assert other.committed("events") == {0: Committed(1, "")}
        assert log.end_offsets("events") == {0: 0, 1: 0, 2: 0}


def test_a_log_begins_where_its_first_segment_does(tmp_path):
    fill(tmp_path, 100, segment_bytes=1000)
    paths = segments(tmp_path)
    paths[0].unlink()
    with LocalLog(tmp_path) as log:
        assert log.start_offsets("events") == {0: int(paths[1].stem)}
        assert log.end_offsets("events") == {0: 100}
        log.seek("events", 0, int(paths[1].stem))
        assert len(log.poll(0, 1000)) == 100 - int(paths[1].stem)


def test_poll_waits_for_a_record_until_its_timeout(tmp_path):
    with LocalLog(tmp_path) as log:
        log.seek("events", 0, 0)
        started = time.monotonic()
        assert log.poll(0.1, 1) == []
        assert time.monotonic() - started >= 0.1


# --- unfinished records -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("missing", range(1, 60, 7))
def test_a_torn_tail_is_not_read_and_cut_by_the_next_writer(tmp_path, missing, caplog):
    fill(tmp_path, 10)
    path = segments(tmp_path)[-1]
    os.truncate(path, path.stat().st_size - missing)
    left = len(read_all(tmp_path))
    assert left in (8, 9)

    with LocalLog(tmp_path) as log:
        log.produce("events", b"new")
    assert "unfinished record" in caplog.text
    assert [r.offset for r in read_all(tmp_path)] == list(range(left + 1))
    assert read_all(tmp_path)[-1].value == b"new"


def test_a_reader_waits_for_a_record_that_is_being_written(tmp_path):
    fill(tmp_path, 3)
    path = segments(tmp_path)[0]
    data = path.read_bytes()
    path.write_bytes(data[:-5])
    with LocalLog(tmp_path) as log:
        log.seek("events", 0, 0)
        assert len(log.poll(0, 10)) == 2
        path.write_bytes(data)
        assert [r.offset for r in log.poll(0, 10)] == [2]


@pytest.mark.parametrize("missing", [1, 30, 50])
def test_a_reader_at_a_torn_tail_reads_what_replaces_it(tmp_path, missing):
    fill(tmp_path, 3)
    path = segments(tmp_path)[0]
    os.truncate(path, path.stat().st_size - missing)
    with LocalLog(tmp_path) as reader, LocalLog(tmp_path) as writer:
        reader.seek("events", 0, 0)
        left = len(reader.poll(0, 10))
        for i in range(4):
            writer.produce("events", b"new" * i)
            assert [(r.offset, r.value) for r in reader.poll(0, 10)] == [(left + i, b"new" * i)]


def test_a_writer_continues_where_it_ended(tmp_path):
    for n in (5, 1, 4):
        fill(tmp_path, n, segment_bytes=100)
    assert [r.offset for r in read_all(tmp_path)] == list(range(10))


@pytest.mark.long
def test_a_writer_killed_in_the_midst_leaves_a_whole_prefix(tmp_path):
    script = (
        "import sys; from streamsvm.connectors.logs.embedded import LocalLog\n"
        "log = LocalLog(sys.argv[1], 100_000)\n"
        "for i in range(10**9): log.produce('events', str(i).encode() * 50)"
    )
    writer = subprocess.Popen([sys.executable, "-c", script, str(tmp_path)])
    while len(list(tmp_path.glob("events/0/*.log"))) < 3:
        time.sleep(0.01)
        assert writer.poll() is None
    writer.kill()
    writer.wait()
    records = read_all(tmp_path, limit=1000)
    assert [r.value for r in records] == [str(i).encode() * 50 for i in range(len(records))]
    fill(tmp_path, 1)
    assert len(read_all(tmp_path, limit=1000)) == len(records) + 1


def test_a_full_disk_leaves_no_half_record(tmp_path, monkeypatch):
    with LocalLog(tmp_path) as log:
        log.produce("events", b"first")
        appender = log._appenders["events", 0]
        whole = appender._file

        class Full:
            def __getattr__(self, name):
                return getattr(whole, name)

            def write(self, data):
                return whole.write(data[:10])

        monkeypatch.setattr(appender, "_file", Full())
        with pytest.raises(OSError, match="only 10 of"):
            log.produce("events", b"second")
        monkeypatch.undo()
        log.produce("events", b"third")
    assert [r.value for r in read_all(tmp_path)] == [b"first", b"third"]


# --- damage -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("position", [0, 1, 3, 5, 9, 12, 20, 28, 33, 45])
def test_a_flipped_bit_is_found_and_named(tmp_path, position):
    """In the length, the checksums, the offset, the lengths of key and value, the content."""
    fill(tmp_path, 10)
    path = segments(tmp_path)[0]
    size = path.stat().st_size // 10
    damage(path, 3 * size + position)
    with pytest.raises(LogCorruption, match=rf"{path.name}: .* byte {3 * size}, offset 3"):
        read_all(tmp_path)


def test_a_writer_does_not_cut_damage_away(tmp_path):
    fill(tmp_path, 10)
    path = segments(tmp_path)[0]
    damage(path, 5, xor=0x80)
    before = path.read_bytes()
    with LocalLog(tmp_path) as log, pytest.raises(LogCorruption):
        log.produce("events", b"new")
    assert path.read_bytes() == before


def test_a_cut_segment_in_the_middle_is_damage(tmp_path):
    fill(tmp_path, 100, segment_bytes=1000)
    path = segments(tmp_path)[1]
    os.truncate(path, path.stat().st_size - 3)
    with pytest.raises(LogCorruption, match=rf"{path.name}: .*cut short"):
        read_all(tmp_path)


def test_a_missing_segment_is_damage(tmp_path):
    fill(tmp_path, 100, segment_bytes=1000)
    paths = segments(tmp_path)
    paths[2].unlink()
    with pytest.raises(LogCorruption, match=rf"offset {int(paths[2].stem)}: .*missing.* {int(paths[3].stem)}"):
        read_all(tmp_path)


def test_a_segment_under_a_wrong_name_is_damage(tmp_path):
    fill(tmp_path, 10)
    path = segments(tmp_path)[0]
    path.rename(path.with_name(f"{4:020d}.log"))
    with pytest.raises(LogCorruption, match="carries offset 0"):
        read_all(tmp_path, offset=5)


# --- one writer -------------------------------------------------------------------------------------------------------


def framed(body, length=None):
    """A record's body with the right checksums around it, and perhaps another length."""
    start = struct.pack("<II", len(body) if length is None else length, crc32(body))
    return start + struct.pack("<I", crc32(start)) + body


def write_segment(folder, *frames):
    path = folder / "events" / "0" / f"{0:020d}.log"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(frames))


def body(offset=0, key=b"k", value=b"v", n_headers=0, rest=b"", lengths=None):
    key_length, value_length = lengths or (len(key), len(value))
    return struct.pack("<qqiiH", offset, 0, key_length, value_length, n_headers) + key + value + rest


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "it has 0 bytes, which are too few"),
        (body()[:20], "it has 20 bytes, which are too few"),
        (body(lengths=(-2, 1)), "its key has the length -2"),
        (body(lengths=(1, -7)), "its value -7"),
        (body(lengths=(1, 100)), "its parts have 127 bytes and the whole 28"),
        (body(lengths=(1, 0)), "its parts have 27 bytes and the whole 28"),
        (body(n_headers=1), "it ends before the last of its 1 headers"),
        (body(n_headers=1, rest=struct.pack("<HI", 1, 0) + b"\xff"), "can't decode byte 0xff"),
        (body(n_headers=1, rest=struct.pack("<HI", 2, 9) + b"ab"), "its parts have 45 bytes and the whole 36"),
    ],
)
def test_a_record_with_right_checksums_and_wrong_content_is_damage(tmp_path, content, reason):
    write_segment(tmp_path, framed(body()), framed(struct.pack("<q", 1) + content[8:]))
    with LocalLog(tmp_path) as log:
        log.seek("events", 0, 0)
        if len(content) >= 26:
            log.poll(0, 1)
            for _ in range(2):  # and again: it is not passed over
                with pytest.raises(LogCorruption, match=f"byte 40, offset 1: .*{reason}"):
                    log.poll(0, 9)
        else:
            with pytest.raises(LogCorruption, match="which are too few"):
                log.poll(0, 9)


@given(st.lists(st.binary(max_size=60), max_size=3))
def test_no_content_is_anything_but_records_or_damage(tmp_path_factory, contents):
    folder = tmp_path_factory.mktemp("log")
    write_segment(folder, *(framed(struct.pack("<q", i) + content) for i, content in enumerate(contents)))
    with suppress(LogCorruption):
        read_all(folder)


def test_a_length_of_gigabytes_takes_no_memory(tmp_path, monkeypatch):
    """A record that is not whole is waited for; only what the file has is asked for."""
    write_segment(tmp_path, framed(body()), framed(b"x", length=2**32 - 1))
    asked, pread = [], os.pread
    monkeypatch.setattr(os, "pread", lambda file, n, at: asked.append(n) or pread(file, n, at))
    assert len(read_all(tmp_path)) == 1
    assert max(asked) < 2**20


def test_other_files_in_the_folders_of_a_log(tmp_path):
    fill(tmp_path, 3)
    (tmp_path / "events" / "0" / "notes.log").write_text("mine")
    (tmp_path / "events" / "0-old").mkdir()
    assert len(read_all(tmp_path)) == 3
    with LocalLog(tmp_path) as log:
        assert log.end_offsets("events") == {0: 3}


@pytest.mark.parametrize(
    "content", [b"", b"{", b"\xff", b"[" * 100_000, b"7", b"[]", b"[1]", b'["1", ""]', b"[1, 2]", b'[-1, ""]']
)
def test_a_damaged_commit(tmp_path, content):
    with LocalLog(tmp_path) as log:
        log.create("events", 1)
        log.commit({("events", 0): Committed(3, "x")})
        (path,) = (tmp_path / "events" / "0").glob("committed-*")
        path.write_bytes(content)
        with pytest.raises(LogCorruption, match=r"committed-streamsvm\.json must hold an offset and a text"):
            log.committed("events")


def test_a_topic_has_one_writer(tmp_path):
    with LocalLog(tmp_path) as one, LocalLog(tmp_path) as other:
        one.produce("events", b"")
        with pytest.raises(AlreadyInUse, match=rf"events/0: .*{os.getpid()}"):
            other.produce("events", b"")
        other.produce("labels", b"")
    with LocalLog(tmp_path) as again:
        again.produce("events", b"")
    assert len(read_all(tmp_path)) == 2


@pytest.mark.long
def test_reading_is_fast(tmp_path):
    """100 000 records: well under a few seconds of this process, however busy the machine is."""
    with LocalLog(tmp_path) as log:
        for _ in range(100_000):
            log.produce("events", b'{"id": 1042, "x": {"1": 1.617466, "2": -0.919233}, "y": true}')
    started = time.process_time()
    assert len(read_all(tmp_path, limit=500)) == 100_000
    assert time.process_time() - started < 5
