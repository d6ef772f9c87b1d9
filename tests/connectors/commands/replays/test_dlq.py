"""Dead letters: listing them, and putting them back."""

import json
from hashlib import sha256

import pytest
from logged import append, read, some_events

from streamsvm.connectors.settings.loading import load
from streamsvm.connectors.trainer import trainer as daemon

# --- dead letters -----------------------------------------------------------------------------------------------------

BAD = [b"{", b'{"id": 2, "x": {"a": 1, "b": 1}, "y": 7}', b"]"]  # not-json, bad-label, not-json


@pytest.fixture
def refused(tmp_path, config):
    """A configuration whose daemon has refused three of its events."""
    append(tmp_path / "log", some_events(60))
    for value in BAD:
        append(tmp_path / "log", [value], key=b"k", headers=[("trace", b"7")])
    daemon.run(load(config, {}, ["daemon.max_bad=1"]))
    return config


def test_dlq_lists_what_was_refused(refused, call):
    code, out, _ = call("dlq", refused)
    assert (code, len(out)) == (0, 3)
    assert out[0].startswith("0\tevents-0-60\tnot-json: ")
    assert out[1] == (
        "1\tevents-0-61\tbad-label: y must be true/false, 0/1, -1/+1, got 7\t"
        'b\'{"id": 2, "x": {"a": 1, "b": 1}, "y": 7}\''
    )
    assert call("dlq", "list", refused)[1] == out
    assert call("dlq", "list", refused, "--reason", "not-json")[1] == [out[0], out[2]]
    assert call("dlq", refused, "--from", 2)[1] == [out[2]]
    assert call("dlq", refused, "--from", 9)[1] == []


def test_options_may_come_first(refused, call):
    assert len(call("dlq", "--from", 1, refused)[1]) == 2
    assert call("dlq", "--reason", "bad-label", "replay", refused)[1] == ["put 1 record back"]


def test_dlq_of_an_app_that_has_refused_nothing(config, call):
    assert call("dlq", config) == (0, [], ["topic 'dlq' has no dead letter"])
    assert call("dlq", "replay", config) == (0, ["put 0 records back"], [])


def test_dead_letters_go_back_once_as_they_were(tmp_path, refused, call):
    assert call("dlq", "replay", refused, "--dry-run")[1][-1] == "would put 3 records back"
    assert len(read(tmp_path / "log")) == 63
    assert call("dlq", "replay", refused)[1] == ["put 3 records back"]
    back = read(tmp_path / "log")[63:]
    assert [(record.key, record.value) for record in back] == [(b"k", value) for value in BAD]
    assert back[2].headers == (("trace", b"7"), ("sv-dlq-replayed", b"2"), ("sv-dlq-attempts", b"1"))
    assert call("dlq", "replay", refused)[1] == ["put 0 records back"]
    assert call("dlq", "replay", refused, "--from", 1, "--dry-run")[1][-1] == "would put 2 records back"


def test_a_record_that_is_refused_again_says_so(tmp_path, refused, call):
    call("dlq", "replay", refused)
    daemon.run(load(refused, {}, ["daemon.max_bad=1"]))
    again = read(tmp_path / "log", "dlq")[3:]
    assert len(again) == 3
    headers = dict(again[0].headers)
    assert len(headers) == len(again[0].headers) == 10
    assert (headers["sv-dlq-attempts"], headers["sv-dlq-offset"], headers["trace"]) == (b"2", b"63", b"7")
    assert call("dlq", "replay", refused)[1] == ["put 3 records back"]
    assert dict(read(tmp_path / "log")[-1].headers)["sv-dlq-attempts"] == b"2"


def test_a_class_that_is_listed_later_is_learned_from_its_dead_letters(tmp_path, config, call):
    few, every = (f"label.classes=[{names}]" for names in ('"ant", "bee", "wasp"', '"ant", "bee", "wasp", "fly"'))
    names = ["ant", "bee", "wasp", "fly"]
    values = [json.dumps({"id": i, "x": {"a": i % 4, "b": 1}, "y": names[i % 4]}).encode() for i in range(40)]
    append(tmp_path / "log", values)
    assert daemon.run(load(config, {}, [few]))[0].counters.learned == 30
    assert len(call("dlq", config, "--reason", "bad-label")[1]) == 10
    assert call("dlq", "replay", config)[1] == ["put 10 records back"]
    state = daemon.run(load(config, {}, [every]))[0]
    assert (state.counters.learned, state.counters.bad, state.classes.labels) == (40, 10, names)
    assert state.model.predict_one({"a": 3, "b": 1}) == "fly"


def test_one_reason_at_a_time(tmp_path, refused, call):
    assert call("dlq", "replay", refused, "--reason", "not-json")[1] == ["put 2 records back"]
    assert call("dlq", "replay", refused, "--reason", "not-json")[1] == ["put 0 records back"]
    assert call("dlq", "replay", refused)[1] == ["put 1 record back"]
    assert call("dlq", "replay", refused)[1] == ["put 0 records back"]
    assert [record.value for record in read(tmp_path / "log")[63:]] == [BAD[0], BAD[2], BAD[1]]


LARGE = b" " * (600 << 10)


@pytest.fixture
def shortened(tmp_path, config):
    """A configuration whose daemon has refused a record that is too large for a dead letter, and goes on."""
    append(tmp_path / "log", [*some_events(60), LARGE], key=b"k", headers=[("trace", b"7")])
    append(tmp_path / "log", some_events(10, seed=1))
    states = daemon.run(load(config, {}))
    assert states[0].counters.predicted == 70
    return config


def test_of_a_large_record_the_dead_letter_has_the_beginning(tmp_path, shortened, call):
    (letter,) = read(tmp_path / "log", "dlq")
    headers = dict(letter.headers)
    assert (letter.key, headers["trace"], headers["sv-dlq-reason"]) == (b"k", b"7", b"not-json")
    assert letter.value == b" " * (64 << 10)
    assert headers["sv-dlq-bytes"] == str(len(LARGE)).encode()
    assert headers["sv-dlq-sha256"] == sha256(LARGE).hexdigest().encode()
    (line,) = call("dlq", shortened)[1]
    assert line.endswith(f"(shortened: {64 << 10} of {len(LARGE)} bytes; replay takes it from events-0-60)")


def test_a_shortened_dead_letter_is_replayed_from_its_topic(tmp_path, shortened, call):
    assert call("dlq", "replay", shortened)[1] == ["put 1 record back"]
    back = read(tmp_path / "log")[-1]
    assert (back.offset, back.key, back.value) == (71, b"k", LARGE)
    assert back.headers == (("trace", b"7"), ("sv-dlq-replayed", b"0"), ("sv-dlq-attempts", b"1"))


@pytest.mark.parametrize("instead", [[], [b"another record"] * 70])
def test_a_shortened_dead_letter_whose_record_is_gone_is_passed_over(tmp_path, shortened, call, caplog, instead):
    """Its topic is made anew, with other records or none."""
    for path in (tmp_path / "log" / "events" / "0").glob("*.log"):
        path.unlink()
    append(tmp_path / "log", instead)
    assert call("dlq", "replay", shortened)[1] == ["put 0 records back, and passed over 1 that cannot be put back"]
    assert "dlq-0-0 is shortened, and events-0-60 is gone" in caplog.text
    assert len(read(tmp_path / "log")) == len(instead)


@pytest.mark.parametrize("options", [{"headers": [("name", bytes(2 << 20))]}, {"key": bytes(2 << 20)}, {}])
def test_a_dead_letter_of_what_nobody_reads_is_passed_over(tmp_path, config, call, caplog, options):
    value = b"{" if options else bytes(2 << 20)
    append(tmp_path / "log", some_events(30))
    append(tmp_path / "log", [value], **options)
    daemon.run(load(config, {}))
    assert call("dlq", "replay", config)[1] == ["put 0 records back, and passed over 1 that cannot be put back"]
    assert "dlq-0-0 is about events-0-30, which has 2097" in caplog.text
    assert len(read(tmp_path / "log")) == 31


def test_dead_letters_go_only_where_this_app_reads(tmp_path, config, call, caplog):
    def dead(topic, partition=b"0"):
        return [("sv-dlq-topic", topic), ("sv-dlq-partition", partition), ("sv-dlq-reason", b"\xff")]

    append(tmp_path / "log", some_events(1))
    for headers in (dead(b"elsewhere"), dead(b"events", b"9"), dead(b"events", b"x"), [], dead(b"events")):
        append(tmp_path / "log", [b"v"], "dlq", headers=headers)
    assert call("dlq", "replay", config)[1] == ["put 1 record back, and passed over 4 from elsewhere"]
    assert (
        sum("comes from a topic that this configuration does not read" in record.message for record in caplog.records)
        == 4
    )
    assert len(read(tmp_path / "log")) == 2
    assert call("dlq", config)[1][3] == "3\t?-?-?\t?: ?\tb'v'"
