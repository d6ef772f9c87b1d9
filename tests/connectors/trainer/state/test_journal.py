"""The journal: what was written whole comes back, and a cut that keeps killing the process is told from bad luck."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamsvm.connectors.logs.segments import LogCorruption
from streamsvm.connectors.trainer.state import journal
from streamsvm.connectors.trainer.state.journal import TRIES, Cut, Journal, Kind, judge, read

offsets = st.integers(0, 2**63 - 1)
cuts_lists = st.lists(st.builds(Cut, st.sampled_from(Kind), offsets, offsets), max_size=20)
A, B, C = Cut(Kind.CUT, 10, 0), Cut(Kind.CUT, 20, 5), Cut(Kind.CUT, 30, 9)
ONE, SKIP = Cut(Kind.ONE, 21, 5), Cut(Kind.SKIP, 21, 5)


def write(path, *steps, past=(), n_tries=0):
    """A journal of cuts, and of "done" and "retry"."""
    written = Journal(path, past, n_tries)
    for step in steps:
        if isinstance(step, Cut):
            written.append(step)
        else:
            getattr(written, step)()
    written.close()


@given(past=cuts_lists, more=cuts_lists)
def test_cuts_come_back_in_order(tmp_path_factory, past, more):
    path = tmp_path_factory.mktemp("journal") / "journal"
    write(path, *more, past=past)
    assert read(path) == ([*past, *more], 1 if more else 0)


@given(past=cuts_lists.filter(bool), n_tries=st.integers(0, 5))
def test_a_journal_says_what_it_began_with(tmp_path_factory, past, n_tries):
    path = tmp_path_factory.mktemp("journal") / "journal"
    write(path, past=past, n_tries=n_tries)
    assert read(path) == (past, n_tries)


@pytest.mark.parametrize(
    ("steps", "n_tries"),
    [
        ([], 0),
        ([A], 1),
        ([A, "done"], 0),
        ([A, "retry"], 2),
        ([A, "retry", "retry"], 3),
        ([A, "retry", "done"], 0),
        ([A, "retry", "done", "retry"], 1),
        ([A, "retry", B], 1),
        ([A, "done", B, "retry"], 2),
        ([A, "done", "done"], 0),
    ],
)
def test_tries_are_those_of_the_last_cut(tmp_path, steps, n_tries):
    write(tmp_path / "journal", *steps)
    assert read(tmp_path / "journal") == ([step for step in steps if isinstance(step, Cut)], n_tries)


def test_a_journal_cut_anywhere_is_a_whole_number_of_its_lines(tmp_path):
    """Written line by line, each in one go, so a kill leaves a prefix: every one is read."""
    path = tmp_path / "journal"
    write(path, A, "done", B, "retry", "done", C)
    data = path.read_bytes()
    by_lines = [([], 0), ([], 0), ([A], 1), ([A], 0), ([A, B], 1), ([A, B], 2), ([A, B], 0), ([A, B, C], 1)]
    assert data.count(b"\n") == len(by_lines) - 1
    for end in range(len(data) + 1):
        path.write_bytes(data[:end])
        assert read(path) == by_lines[data[:end].count(b"\n")], end


@pytest.mark.parametrize("rest", [b"cut 4", b"cut 40 1", b"tr", b"don", b"\xff", b"\0\0\0\0", b"skip 40 12"])
def test_an_unfinished_line_says_nothing(tmp_path, rest):
    path = tmp_path / "journal"
    write(path, A, B)
    with open(path, "ab") as file:
        file.write(rest)
    assert read(path) == ([A, B], 1)


OLD = b"cut 10 0\ndone\ncut 20 5\ntry\n"  # as version 0.1.0 wrote it, without checksums


def test_a_journal_of_the_first_version(tmp_path):
    path = tmp_path / "journal"
    for rest in (b"", b"cut 3", b"cut 30 9 0123"):
        path.write_bytes(OLD + rest)
        assert read(path) == ([A, B], 2)


def test_no_damaged_byte_is_taken_for_another_journal(tmp_path):
    """Each byte in turn becomes others: the journal is refused, or the damage made its last line an unfinished one."""
    path = tmp_path / "journal"
    write(path, A, "done", B, "retry", C)
    data = path.read_bytes()
    for place in range(len(data)):
        for byte in {0x00, 0x0A, 0x0D, 0x20, 0x30, 0x39, 0xFF, data[place] ^ 1} - {data[place]}:
            path.write_bytes(data[:place] + bytes([byte]) + data[place + 1 :])
            if place == len(data) - 1:
                assert read(path) == ([A, B], 2)
            else:
                with pytest.raises(LogCorruption, match=r"journal: line \d is damaged"):
                    read(path)


@pytest.mark.parametrize(
    "change", [lambda lines: lines[1:], lambda lines: lines[:1] + lines, lambda lines: lines[::-1]]
)
def test_lines_that_are_lost_doubled_or_mixed_up(tmp_path, change):
    path = tmp_path / "journal"
    write(path, A, "done", B)
    path.write_bytes(b"".join(change(path.read_bytes().splitlines(keepends=True))))
    with pytest.raises(LogCorruption, match="lines before it are missing"):
        read(path)


@pytest.mark.parametrize(
    "line", [b"cut 40\n", b"cut 40 9 9\n", b"cut x 9\n", b"cut -1 9\n", b"cot 4 9\n", b"\xff\n", b"\n", b"try again\n",
             b"done 00000000\n", b"cut 99999999999999999999 0\n", b"cut 4 9\r\n", b"cut 4 9\x0b\n"]
)  # fmt: skip
def test_a_damaged_line_of_the_first_version(tmp_path, line):
    path = tmp_path / "journal"
    path.write_bytes(OLD + line + b"done\n")
    with pytest.raises(LogCorruption, match="line 5 is damaged"):
        read(path)


@given(st.binary(max_size=200))
def test_any_bytes_are_a_journal_or_refused(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("journal") / "journal"
    path.write_bytes(data)
    with suppress(LogCorruption):
        read(path)


@pytest.mark.parametrize("step", ["write_bytes", "replace"])
def test_a_kill_while_a_journal_is_begun_leaves_the_old_one(tmp_path, monkeypatch, step):
    class Killed(BaseException):
        pass

    def kill(*_):
        raise Killed

    path = tmp_path / "journal"
    write(path, A, B)
    with monkeypatch.context() as patch:
        patch.setattr(type(path), step, kill)
        with pytest.raises(Killed):
            Journal(path, [A], 0)
    assert read(path) == ([A, B], 1)
    write(path, C, past=[A, B])
    assert read(path) == ([A, B, C], 1)


def test_each_line_is_there_at_once(tmp_path):
    """Nothing waits in a buffer of the process: a kill would take it along."""
    path = tmp_path / "journal"
    written = Journal(path)
    for number in range(1, 5):
        written.append(Cut(Kind.CUT, number, 0))
        assert len(read(path)[0]) == number
    written.close()


def test_a_full_disk_is_no_silence(tmp_path, monkeypatch):
    path = tmp_path / "journal"
    written = Journal(path)
    whole = written._file

    class Full:
        name = whole.name

        def write(self, data):
            return whole.write(data[:5])

    monkeypatch.setattr(written, "_file", Full())
    with pytest.raises(OSError, match=r"only 5 of 18 bytes.*journal"):
        written.append(A)
    monkeypatch.undo()
    written.close()
    assert read(path) == ([], 0)
    write(path, past=[])
    assert read(path) == ([], 0)


# --- who is to blame --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cuts", "n_tries", "expected"),
    [
        ([], 0, ([], 0, None)),
        ([A], 0, ([A], 0, None)),
        ([A], TRIES - 1, ([A], TRIES - 1, None)),
        ([A], TRIES, ([], 0, A)),
        ([A, B], TRIES, ([A], 0, B)),
        ([A, B], TRIES + 5, ([A], 0, B)),
        ([A, ONE], 1, ([A, ONE], 1, None)),
        ([A, ONE], TRIES - 1, ([A, ONE], TRIES - 1, None)),
        ([A, ONE], TRIES, ([A, SKIP], 0, None)),
        ([A, SKIP], TRIES, ([A, SKIP], TRIES, None)),  # nothing is left to be taken apart
        ([A, SKIP, C], TRIES, ([A, SKIP], 0, C)),
    ],
)
def test_a_cut_is_taken_apart_and_a_record_passed_over_when_they_have_killed_often(cuts, n_tries, expected):
    assert judge(cuts, n_tries) == expected


def test_a_killer_is_found_within_a_bounded_number_of_crashes(tmp_path, monkeypatch):
    """The life of a journal over many processes: each takes again what is in it, and dies of record 17."""
    monkeypatch.setattr(journal, "TRIES", 2)
    path = tmp_path / "journal"
    write(path)
    consumed, n_crashes = 0, 0
    while consumed < 32:
        cuts, n_tries, suspect = judge(*read(path))
        running = Journal(path, cuts, n_tries)
        consumed, again = 0, list(cuts)
        while consumed < 32:
            if again:
                cut = again.pop(0)
                if not again:
                    running.retry()
            else:
                cut = Cut(Kind.ONE if suspect else Kind.CUT, consumed + (1 if suspect else 8), 0)
                running.append(cut)
            if cut.kind != Kind.SKIP and consumed <= 17 < cut.events:
                n_crashes += 1
                break
            consumed = cut.events
            if not again:
                running.done()
        running.close()
    assert n_crashes == 4
    skipped = [cut for cut in read(path)[0] if cut.kind == Kind.SKIP]
    assert skipped == [Cut(Kind.SKIP, 18, 0)]
