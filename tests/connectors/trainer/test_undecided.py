"""Questions about what was not decided, and checks of decisions: over restarts, within a budget, as in a loop."""

import contextlib
import json

import numpy as np
import pytest
from decided import START, append, configure, events, new
from logged import change, read, read_json

from streamsvm import LASVM
from streamsvm.active import StreamPool
from streamsvm.conformal import Decision
from streamsvm.connectors.report.charts import decisions_of
from streamsvm.connectors.report.decisions import decisions_panels
from streamsvm.connectors.settings.contradictions import find_contradictions
from streamsvm.connectors.settings.sections import ConfigError
from streamsvm.connectors.trainer import trainer
from streamsvm.connectors.trainer.state.state import State
from streamsvm.connectors.trainer.state.stored_state import read_state
from streamsvm.connectors.trainer.state.undecided import Undecided

pytestmark = pytest.mark.usefixtures("no_waiting_for_the_disk")

AUDIT = 0.2
ALONE = Decision((True,), {False: 0.1, True: 0.9}, None, None, 0)
BOTH = Decision((True, False), {False: 0.4, True: 0.6}, None, None, 0)


def asking(folder, **labelling):
    settings = configure(folder, log={"labels": "labels", "questions": "questions"})
    return change(settings, labelling={"selection": "undecided", "audit": AUDIT, "open": 1000, **labelling})


def asked(settings):
    """All questions so far, the oldest first, by event."""
    values = (json.loads(record.value) for record in read(settings, "questions") if record.value)
    return {each["id"]: each for each in values if "query_id" in each}


def play(settings, given, parts):
    """Append events, and answers to the questions about them; a restart after each.  The last state."""
    answered = set()
    for begin, end in parts:
        append(settings, [{"id": e["id"], "x": e["x"]} for e in given[begin:end]], start=START + 10 * begin)
        trainer.run(settings)
        fresh = [id_ for id_ in asked(settings) if id_ not in answered]
        answers = [{"id": id_, "y": given[id_]["y"], "source": "ann"} for id_ in fresh]
        append(settings, answers, "labels", start=START + 10 * end)
        answered.update(fresh)
        state = trainer.run(settings)[0]
    return state


PARTS = ((0, 60), (60, 200), (200, 400))


@pytest.mark.parametrize("classes", [(), ("a", "b", "c")], ids=["two", "three"])
def test_what_is_undecided_and_random_others_are_asked_and_only_they_count(tmp_path, classes):
    settings = change(asking(tmp_path), label={"classes": classes})
    given = list(events(400, classes))
    state = play(settings, given, PARTS)
    model, rule = new(settings, classes), Undecided(AUDIT, 0.0, "events-0")
    expected, questions = {}, asked(settings)
    for begin, end in PARTS:
        saids = {event["id"]: model.decide_one(event["x"]) for event in given[begin:end]}
        wanted = {id_ for id_, said in saids.items() if rule.counts(id_, said)}
        expected |= {id_: "check" if saids[id_].decided else "undecided" for id_ in wanted}
        for id_ in [id_ for id_ in questions if id_ in wanted]:
            model.learn_one(given[id_]["x"], given[id_]["y"], id=id_, said=saids[id_])
    assert {id_: each["reason"] for id_, each in questions.items()} == expected
    assert 5 < list(expected.values()).count("check") < 100 < len(expected) < 300
    assert state.models.digest() == model.digest()
    assert model.audit == AUDIT
    assert state.labelling.loop.verdict().why == "people answer what is not decided, and check 20% of the decisions"
    alone = np.mean([said["decided"] for said in read_json(settings, "predictions")])
    n_checked = list(expected.values()).count("check")
    assert state.alarms.errors.n_seen == n_checked, "undecided events become harder: their errors are no alarm"
    panel, _ = decisions_panels(read_state(settings.daemon.state_dir)[0])
    assert state.decided.tallies == model.tallies
    for line, tally in zip(decisions_of({"x": state}, settings), state.decided.tallies.values(), strict=True):
        share = (tally.decided / AUDIT) / (tally.n - tally.decided + tally.decided / AUDIT)
        assert f"about {share:.2%} by the labels of {tally.n} events, about" in line
    assert float(dict(panel.facts)["decided"].rstrip("%")) / 100 == pytest.approx(alone, abs=0.08)


def test_a_trainer_that_is_killed_asks_the_same(tmp_path, monkeypatch):
    whole, settings = (asking(tmp_path / name, open=20, max_fraction=0.6) for name in ("whole", "killed"))
    given = list(events(400))
    expected, calls = play(whole, given, PARTS), iter(range(10**6))

    def killing(self, *arguments):
        if next(calls) in (2, 7, 9):  # these checkpoints are not written
            raise KeyboardInterrupt
        return to_checkpoint(self, *arguments)

    def stubborn(settings):
        with contextlib.suppress(KeyboardInterrupt):
            return run(settings)
        return stubborn(settings)

    to_checkpoint, run = State.to_checkpoint, trainer.run
    monkeypatch.setattr(State, "to_checkpoint", killing)
    monkeypatch.setattr(trainer, "run", stubborn)
    state = play(settings, given, PARTS)
    assert next(calls) > 10
    assert asked(settings) == asked(whole)
    assert state.models.digest() == expected.models.digest()
    assert state.labelling.to_bytes() == expected.labelling.to_bytes()


def test_a_label_that_was_not_asked_for_teaches_the_model_and_says_nothing_of_decisions(tmp_path):
    settings = asking(tmp_path)
    given = list(events(400))
    play(settings, given, PARTS)
    said = {each["id"]: each for each in read_json(settings, "predictions")}
    other = next(i for i in range(399, 0, -1) if said[i]["decided"] and i not in asked(settings))
    before = trainer.run(settings)[0]
    append(settings, [{"id": other, "y": not given[other]["y"]}], "labels", start=START + 10_000)
    state = trainer.run(settings)[0]
    assert state.models.trained(None).decider.tallies == before.models.trained(None).decider.tallies
    assert state.counters.learned == before.counters.learned + 1
    append(settings, [{"id": other, "y": given[other]["y"]}], "labels", start=START + 11_000)
    corrected = trainer.run(settings)[0]
    assert corrected.join.counters.corrected == 1
    assert corrected.models.trained(None).decider.tallies == before.models.trained(None).decider.tallies


def test_a_share_of_the_events_is_asked_about_at_most(tmp_path):
    settings = asking(tmp_path, max_fraction=0.25)
    play(settings, list(events(400)), PARTS)
    found = [each["reason"] for each in asked(settings).values()]
    n_checks = found.count("check")
    assert 0 < n_checks < len(found) <= 100 + n_checks


def test_checks_come_first_and_then_the_oldest():
    rule, pool, rng = Undecided(1.0, 0.0, "events-0"), StreamPool(), np.random.default_rng(0)
    for key, said in ((7, BOTH), (3, ALONE), (5, BOTH), (1, ALONE)):
        assert rule.wants(key, said)
        pool.add(key, {"a": 1.0}, key, rng)
    found = []
    while len(pool):
        found.append(rule.choose(pool, LASVM(), rng))
        pool.discard(found[-1].key)
        other = Undecided(1.0, 0.0, "events-0")
        other.restore(rule.state())
        rule = other
    assert [choice.key for choice in found] == [3, 1, 7, 5]
    assert [choice.reason for choice in found] == ["check", "check", "undecided", "undecided"]


def test_the_checks_are_a_random_share_that_no_restart_changes():
    rule = Undecided(0.05, 0.0, "events-0")
    drawn = [key for key in range(-10_000, 10_000) if rule.counts(key, ALONE)]
    assert 900 < len(drawn) < 1100
    assert drawn == [key for key in range(-10_000, 10_000) if Undecided(0.05, 0.0, "events-0").counts(key, ALONE)]
    assert set(drawn) != {key for key in range(-10_000, 10_000) if Undecided(0.05, 0.0, "events-1").counts(key, ALONE)}
    assert all(rule.counts(key, BOTH) for key in range(100))


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"labelling": {"selection": "mixed"}}, 'decide.error with log.questions needs labelling.selection = "undec'),
        ({"decide": {"error": 0.0}}, 'labelling.selection = "undecided" needs decide.error'),
        ({"labelling": {"audit": 0.0}}, "needs labelling.audit above 0"),
        ({"labelling": {"max_labels": 9}}, "labelling.max_labels does not go with"),
        ({"labelling": {"threshold": "recall"}}, "labelling.threshold does not go with labelling.selection"),
    ],
)
def test_settings_that_contradict_it(tmp_path, changes, text):
    settings = asking(tmp_path)
    assert find_contradictions(settings) == []
    assert any(text in line for line in find_contradictions(change(settings, **changes)))


def test_another_audit_needs_another_state(tmp_path):
    settings = asking(tmp_path)
    append(settings, [{"id": 0, "x": {"a": 1.0}}])
    trainer.run(settings)
    with pytest.raises(ConfigError, match=r"labelling\.audit = 0\.2, the configuration says 0\.1"):
        trainer.run(change(settings, labelling={"audit": 0.1}))
