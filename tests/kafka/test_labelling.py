"""The labelling loop on a real broker: a slow, noisy oracle, and everything killed now and then."""

import json
import random
import signal
import time

from patience import Patience

from streamsvm import LASVM
from streamsvm.connectors.records.codec import Codec
from streamsvm.connectors.settings.loading import load

from .app import WAIT_SECONDS, settings_of
from .test_trainer import state_of

N_EVENTS, N_LABELS = 400, 50


def test_a_slow_and_noisy_oracle_through_kills_on_both_sides(topics, start_app):
    log = settings_of(topics, model="", questions=topics.create("questions", cleanup_policy="compact"))
    rng = random.Random(3)
    truth = {f"id-{i}": rng.random() < 0.15 for i in range(N_EVENTS)}
    events = {id_: {name: rng.gauss(2.0 * y, 0.8) for name in "ab"} for id_, y in truth.items()}
    topics.produce(
        log["topic"],
        [(b"k", json.dumps({"id": id_, "x": x, "truth": truth[id_]}).encode()) for id_, x in events.items()],
    )
    app = start_app(
        "labelled",
        log=log,
        labelling={"stop": "never", "open": 6, "tune_gamma": 0},
        daemon={"checkpoint_records": 10, "batch": 1},  # what is in one cut is forgotten together
        group={"id": log["topic"], "instance": "a"},
    )
    oracle = ("--field", "truth", "--delay", "0.05", "--noise", "0.1")
    trainer, labelling = app.start(), app.start(command="label", flags=oracle)
    for wanted, process in ((12, "labelling"), (24, "trainer"), (36, "both"), (N_LABELS, "none")):
        wait_for_answers(wanted, topics, log, trainer)
        time.sleep(0.2 * rng.random())
        if process in ("labelling", "both"):
            kill(labelling)
            labelling = app.start(command="label", flags=oracle)
        if process in ("trainer", "both"):
            kill(trainer)
            trainer = app.start()
        revise(topics, log)
    trainer.wait_until(lambda: trainer.get("/metrics")[0] == 200)  # while it prepares, a signal ends it on the spot
    for running in (labelling, trainer):
        assert running.stop() == 0, running.said
    app.run("daemon.follow=false")

    answers = answers_of(topics, log)
    first = {answer.id: answer.y for answer in reversed(answers)}
    asked = [json.loads(record.value)["id"] for record in questions_of(topics, log)]
    assert {answer.id for answer in answers} <= set(asked)
    assert any(truth[id_] != y for id_, y in first.items()), "the oracle is noisy"
    state = state_of(app)
    assert state.labelling.loop.counts.n_answered == len(first)
    counters = state.join.counters
    assert (counters.matched, counters.undone, counters.corrected >= 8) == (len(first), 8, True)
    model, n_labels = retrained(app, state, events, answers)
    assert state.model.support_ids.tolist() == model.support_ids.tolist()  # the sigmoid follows what was predicted
    assert state.model.dual_coef.tolist() == model.dual_coef.tolist()
    assert state.labelling.loop.counts.n_labels == n_labels == len(first) - 4


def kill(process):
    process.signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL


def wait_for_answers(n, topics, log, trainer):
    patience = Patience(WAIT_SECONDS)
    while len(answers_of(topics, log)) < n:
        assert trainer.is_alive, trainer.said
        assert patience.lasts, trainer.said
        time.sleep(1.0)  # a look takes time that the others need


def answers_of(topics, log):
    return [Codec().decode_label(record) for record in topics.read_all(log["labels"])]


def revise(topics, log):
    """Somebody corrects one answer, takes back another, and one more for a moment."""
    said = {}
    for answer in answers_of(topics, log):
        said.setdefault(answer.id, []).append(answer.y)
    wrong, gone, back = [id_ for id_, labels in said.items() if len(labels) == 1][:3]
    revisions = [
        {"id": wrong, "y": not said[wrong][0]},
        {"id": gone, "op": "retract"},
        {"id": back, "op": "retract"},
        {"id": back, "y": said[back][0]},
    ]
    newest = 10**15  # above all times in milliseconds, which the revisions of answers are
    topics.produce(
        log["labels"],
        [(b"k", json.dumps({**fields, "rev": newest + i}).encode()) for i, fields in enumerate(revisions)],
    )


def questions_of(topics, log):
    """Every record that asks."""
    return [record for record in topics.read_all(log["questions"]) if record.key != b"status" and record.value]


def retrained(app, state, events, answers):
    """A model that was taught the answers in their order, and how many of them hold."""
    model = LASVM(**load(app.config, {}).model.parameters())
    taught, revs = {}, {}
    for answer in answers:
        if answer.rev < revs.get(answer.id, 0) or taught.get(answer.id) == answer.y:
            continue
        taught[answer.id], revs[answer.id] = answer.y, answer.rev
        model.forget(answer.key)
        if answer.y is not None:
            model.learn_one(events[answer.id], answer.y, id=answer.key)
    return model, sum(y is not None for y in taught.values())
