"""The search for the records that broke a model."""

import itertools
import json
import time

import numpy as np
import pytest
from logged import append, some_events

from streamsvm.connectors.commands.replays import bisect as searching
from streamsvm.connectors.logs.embedded import LocalLog

pytestmark = pytest.mark.usefixtures("no_waiting_for_the_disk")


def poisoned(n, first, end, seed=0):
    """Events, of which some in a row have the wrong label."""
    for i, value in enumerate(some_events(n, seed)):
        event = json.loads(value)
        yield event | ({"y": not event["y"]} if first <= i < end else {})


def bisect(call, config, *flags):
    settings = [part for flag in flags for part in ("--set", flag)]
    return call("bisect", config, "--held-out", "trusted", *settings)


@pytest.mark.long
@pytest.mark.parametrize(("first", "end"), [(610, 660), (455, 505)])
@pytest.mark.parametrize("apart", [False, True])
def test_mislabelled_records_are_found(tmp_path, config, call, monkeypatch, first, end, apart):
    append(tmp_path / "log", some_events(300, seed=9), "trusted")
    clock = itertools.count(time.time_ns(), 1_000_000)
    with LocalLog(tmp_path / "log") as log, monkeypatch.context() as patch:
        patch.setattr(time, "time_ns", lambda: next(clock))  # labels of one millisecond would come after all its events
        for event in poisoned(1000, first, end):
            label = {"id": event["id"], "y": event.pop("y")} if apart else None
            log.produce("events", json.dumps(event).encode())
            if label:
                log.produce("labels", json.dumps(label).encode())
    code, out, err = bisect(call, config, *(["log.labels=labels"] if apart else []))
    assert code == 0, err
    words = out[0].replace(":", "").split()
    found = range(int(words[2]), int(words[4]))
    assert len(set(found) & set(range(first, end + apart))) > len(found) / 2
    assert len(found) <= 100
    assert int(out[-1].split()[-2]) <= searching.MOST
    assert not list(tmp_path.glob("state*"))


def test_where_nothing_is_wrong_nothing_is_found(tmp_path, config, call, caplog):
    caplog.set_level("INFO")
    append(tmp_path / "log", some_events(300, seed=9), "trusted")
    append(tmp_path / "log", some_events(300))
    code, out, _ = bisect(call, config)
    assert (code, out) == (
        0,
        ["after the first tenth of events-0, nothing has clearly raised the loss on 300 held-out events"],
    )
    assert not [record for record in caplog.records if record.name.startswith("streamsvm.connectors.trainer")]


@pytest.mark.parametrize(("low", "high"), [(0, 3), (417, 460), (990, 1000), (500, 501)])
def test_the_search_ends_at_the_batch(low, high):
    """With a loss that rises only within a batch, the range found is the batch, or a little more."""

    class Models:
        n_replays = 0

        def along(self, ends, step):
            self.n_replays += len(ends)
            return [(offset, self._look(offset)) for offset in range(ends[0], ends[-1] + 1, step)]

        def at(self, offset):
            self.n_replays += 1
            return self._look(offset)

        def _look(self, offset):
            return searching.Look(np.full(50, min(max(offset, low), high) - low + np.arange(50) * 1e-9), np.zeros(50))

    models = Models()
    batch = searching._search(models, list(range(-1000, 3001, 400)))
    assert batch.first <= low < high <= batch.end or batch.rise >= 0.64 * (high - low)
    assert batch.end - batch.first <= 2 * (high - low) + 40
    assert models.n_replays <= searching.MOST


def test_in_a_short_log_the_search_ends_too():
    """Two records in a row, one of them twice as bad: neither has nearly all of the rise."""
    asked = []

    class Models:
        n_replays = 0  # Offsets that were asked for before cost no replay.

        def along(self, ends, step):
            return [(offset, self._look(offset)) for offset in range(ends[0], ends[-1] + 1, step)]

        def at(self, offset):
            asked.append(offset)
            assert len(asked) < 100
            return self._look(offset)

        def _look(self, offset):
            rise = (offset > 63) + 0.5 * (offset > 64)
            return searching.Look(np.full(50, rise) + np.arange(50) * 1e-9, np.zeros(50))

    batch = searching._search(Models(), list(range(0, 101, 10)))
    assert batch.first <= 63
    assert batch.end >= 65


def test_what_bisect_refuses(tmp_path, config, call):
    append(tmp_path / "log", some_events(10), "trusted")
    for flags, words in ((["daemon.per=key"], "looks at one model"), ([], "at least 20 are needed")):
        code, _, err = bisect(call, config, *flags)
        assert code
        assert words in " ".join(err)
    append(tmp_path / "log", some_events(30), "trusted")
    append(tmp_path / "log", some_events(30))
    code, _, err = call("bisect", config, "--held-out", "trusted", "--partition", "3")
    assert code
    assert "'events' does not have it; its partitions are 0" in " ".join(err)
