"""The command that makes every model forget a person at once, and what a trainer does about it."""

import itertools
import json

import pytest
from logged import append, change, read, some_events

from streamsvm.connectors.commands.erasing.subjects import Subjects
from streamsvm.connectors.logs.embedded import LocalLog
from streamsvm.connectors.records.erasures import Erasure, Swap, read_request
from streamsvm.connectors.records.models import unpack_model
from streamsvm.connectors.records.published import read_newest
from streamsvm.connectors.settings.loading import load
from streamsvm.connectors.settings.opening import open_once
from streamsvm.connectors.trainer import trainer
from streamsvm.connectors.trainer.state.stored_state import read_state

pytestmark = pytest.mark.usefixtures("no_waiting_for_the_disk")
FLAGS = ["log.erasures=erasures"]


def with_users(n, seed=0):
    """Events of 20 users, whose name stands beside the features."""
    return [{**json.loads(value), "user": f"u{i % 20}"} for i, value in enumerate(some_events(n, seed))]


def erase(call, config, *subjects, by="id", flags=()):
    named = [part for subject in subjects for part in ("--subject", subject)]
    settings = [part for flag in (*FLAGS, *flags) for part in ("--set", flag)]
    return call("erase", config, *named, "--by", by, *settings)


def run(config, *flags, **changes):
    return trainer.run(change(load(config, {}, [*FLAGS, *flags]), **changes))


def members(model):
    return set(model.support_ids)


def test_a_running_trainer_forgets_a_user_at_once(tmp_path, config, call):
    flags = ["log.model=models"]
    append(tmp_path / "log", with_users(300))
    before = run(config, *flags)[0]
    theirs = {i for i in range(300) if i % 20 == 3}
    assert members(before.model) & theirs
    assert erase(call, config, "u3", by="user", flags=flags)[0] == 0
    after = run(config, *flags)[0]
    assert not members(after.model) & theirs
    assert (after.offset, after.counters.predicted) == (300, 300)
    assert after.version > before.version
    settings = load(config, {}, [*FLAGS, *flags])
    for path in (tmp_path / "state" / "p0").glob("checkpoint-*.ssvm"):  # no checkpoint with the examples is left
        assert path.stat().st_size
    assert len(list((tmp_path / "state" / "p0").glob("checkpoint-*"))) == settings.daemon.keep
    with open_once(settings) as log:
        newest = read_newest(log, "models", float("inf"))
    assert not members(unpack_model(newest["p0"].blob).model) & theirs


def test_records_that_were_erased_before_they_were_read_are_never_learned(tmp_path, config, call):
    events = with_users(300)
    append(tmp_path / "log", events)
    assert erase(call, config, "u3", by="user")[0] == 0
    found = run(config)[0]
    assert len(read(tmp_path / "log", "predictions")) == 285

    others = tmp_path / "others"
    append(others, [event for event in events if event["user"] != "u3"])
    without = run(config, f"log.dir={others}", f"daemon.state_dir={tmp_path / 'without'}")[0]
    assert found.models.digest() == without.models.digest()
    assert found.metrics.cumulative() == without.metrics.cumulative()


@pytest.mark.parametrize(
    ("by", "subject", "gone"),
    [("id", "7", {7}), ("user", "u7", {7, 27}), (".id", "7", {7}), ("key", "k7", {7}), ("x.a", "nothing", set())],
)
def test_subjects_are_named_by_ids_keys_and_fields(tmp_path, config, by, subject, gone):
    with LocalLog(tmp_path / "log") as log:
        log.create("events", 2)
        for i, event in enumerate(with_users(40)):
            log.produce("events", json.dumps(event).encode(), key=b"k%d" % i, partition=i % 2)
            log.produce("labels", json.dumps({"id": i, "y": True}).encode(), partition=0)
    settings = load(config, {}, [*FLAGS, "log.labels=labels"])
    with open_once(settings) as log:
        found = Subjects(settings, [subject], by).find(log)
    assert {2 * at + number for number, here in found.items() for at in here.events} == gone
    assert set(found[0].labels) == gone
    named = {number for here in found.values() for numbers in here.examples.values() for number in numbers}
    assert gone <= named


def test_a_subject_that_the_log_does_not_have_is_named(tmp_path, config, call):
    append(tmp_path / "log", with_users(20))
    code, out, _ = erase(call, config, "u3", by="usr")
    assert (code, out[-1]) == (4, "nothing is erased")
    assert "no event of the log has usr = 'u3'" in out[0]
    code, out, _ = erase(call, config, "u3", "u99", by="user")
    assert code == 0
    assert "has user = 'u99'" in out[0]
    assert "1 of 2 subjects: 1 event and" in out[1]
    assert len(read(tmp_path / "log", "erasures")) == 1


def test_a_subject_is_found_by_a_number_of_any_size_and_beside_an_infinite_one(tmp_path, config, call):
    """An event is learned with such fields beside its features, so it is forgotten by them."""
    number = 3**50
    event = '{"id": %d, "x": {"a": 1}, "y": true, "user": {"number": %d}%s}'
    append(tmp_path / "log", [(event % (len(more), number, more)).encode() for more in ("", ', "sum": 1e999')])
    assert run(config)[0].counters.learned == 2
    code, out, _ = erase(call, config, str(number), by="user.number")
    assert (code, out[0].split(":")[0]) == (0, "1 subject")
    assert run(config)[0].model.n_members == 0


def test_an_id_that_the_log_does_not_have_is_asked_for_with_a_word(tmp_path, config, call):
    append(tmp_path / "log", with_users(20))
    code, out, _ = erase(call, config, "ada")
    assert code == 0
    assert "no event of the log has id = 'ada', and only a model that has kept it forgets it" in out[0]
    assert "0 of 1 subject: 0 events" in out[1]


def test_an_event_and_a_label_that_wait_are_forgotten(tmp_path, config, call):
    flags = ["log.labels=labels"]
    append(tmp_path / "log", [{"id": i, "x": {"a": i % 3}, "user": f"u{i}"} for i in range(20)])
    append(tmp_path / "log", [{"id": i, "y": i % 2} for i in range(5)] + [{"id": 99, "y": 1}], "labels")
    assert run(config, *flags)[0].join.n_entries == 21
    erase(call, config, "7", "99", flags=flags)
    state = run(config, *flags)[0]
    assert state.join.n_entries == 19
    assert state.join.event_of(7) is None
    append(tmp_path / "log", [{"id": 7, "y": 1}], "labels")
    assert run(config, *flags)[0].counters.learned == 5


def test_the_model_of_a_key_goes_as_a_whole_and_others_stay(tmp_path, config, call):
    flags = ["daemon.per=key", "log.model=models"]
    with LocalLog(tmp_path / "log") as log:
        for i, value in enumerate(some_events(120)):
            log.produce("events", value, key=b"k%d" % (i % 4))
    before = run(config, *flags)[0]
    digests = {key: before.models.trained(key).model.digest() for key in sorted(before.models.keys())}
    erase(call, config, "k1", by="key", flags=flags)
    after = run(config, *flags)[0]
    assert after.models.keys() == {b"k0", b"k2", b"k3"}
    assert all(after.models.trained(key).model.digest() == digests[key] for key in sorted(after.models.keys()))
    with open_once(load(config, {}, [*FLAGS, *flags])) as log:
        assert len(read_newest(log, "models", float("inf"))) == 3
    erase(call, config, "2", flags=flags)  # an example of k2
    again = run(config, *flags)[0]
    assert again.models.trained(b"k0").model.digest() == digests[b"k0"]
    assert 2 not in members(again.models.trained(b"k2").model)


def test_a_kill_before_the_checkpoint_repeats_the_request_at_the_same_place(tmp_path, config, call, monkeypatch):
    append(tmp_path / "log", with_users(200))
    run(config)
    erase(call, config, "u3", by="user")
    append(tmp_path / "log", with_users(300)[200:])

    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(trainer.CheckpointStore, "save", killed)
        with pytest.raises(KeyboardInterrupt):
            run(config)
    [stored] = read_state(tmp_path / "state")
    assert "erasures" not in stored.checkpoint.offsets
    state = run(config)[0]
    assert state.counters.erased == 1
    again = run(config)[0]
    assert (again.counters.erased, again.models.digest()) == (1, state.models.digest())
    said = {}
    for record in read(tmp_path / "log", "predictions"):  # what comes again is the same
        value = json.loads(record.value)
        assert said.setdefault(value["src"], value) == value
    looks = itertools.count()
    stopped = trainer.run(load(config, {}, [*FLAGS, "daemon.follow=true"]), stop=lambda: next(looks) > 4)
    assert stopped[0].counters.erased == 1


def test_a_question_about_an_erased_event_is_withdrawn(tmp_path, config, call):
    flags = ["log.labels=labels", "log.questions=questions"]
    append(tmp_path / "log", [{"id": i, "x": {"a": i % 7, "b": i % 5}} for i in range(60)])
    state = run(config, *flags)[0]
    [question, *_] = state.labelling.loop.open_questions()
    erase(call, config, str(question.key), flags=flags)
    state = run(config, *flags)[0]
    assert question.key not in {each.key for each in state.labelling.loop.open_questions()}
    tombstones = [r.key for r in read(tmp_path / "log", "questions") if r.value is None]
    assert question.id.encode() in tombstones


def test_a_request_is_bytes_and_back():
    erasure = Erasure((1, 5), (2,), {None: (7, -(1 << 63)), b"\xff": (1,)}, (b"k",))
    [value] = erasure.to_values()
    record = read_request(_record(value))
    assert record == erasure
    large = Erasure(tuple(range(50_000)), (), {}, ())
    parts = [read_request(_record(value)) for value in large.to_values()]
    assert [at for part in parts for at in part.events] == list(large.events)
    assert read_request(_record(next(Swap("x").to_values()))) == Swap("x")


@pytest.mark.parametrize("value", [b"", b"[]", b'{"op": "swap", "app": "../x"}', b'{"op": "erase", "events": [0.5]}'])
def test_a_record_that_is_no_request_is_put_aside(tmp_path, config, value):
    append(tmp_path / "log", with_users(20))
    append(tmp_path / "log", [value or b"{}"], "erasures")
    assert run(config)[0].erased.offset == 1
    assert [dict(r.headers)["sv-dlq-reason"] for r in read(tmp_path / "log", "dlq")] == [b"bad-erasure"]


def test_nothing_is_erased_without_a_topic_of_requests(config, call):
    code, _, err = call("erase", config, "--subject", "7")
    assert code
    assert "log.erasures = ''" in err[0]


def _record(value):
    from streamsvm.connectors.logs.transport import Record

    return Record("erasures", 0, 0, 0, None, value, ())
