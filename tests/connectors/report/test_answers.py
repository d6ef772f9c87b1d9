"""What the report makes of the answers: which guesses it compares, its intervals, corrections, pace, and the page."""

import math
from itertools import count

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from logged import append, config_text

from streamsvm.connectors.commands.cli import main
from streamsvm.connectors.records.labels import Label, Place
from streamsvm.connectors.records.people.label_history import Entry, Guess
from streamsvm.connectors.report import answers
from streamsvm.connectors.report.answers import Answers, quality, wilson
from streamsvm.connectors.report.labelling import labelling_panels
from streamsvm.connectors.report.page import write_report
from streamsvm.connectors.report.panel import Panel, in_columns
from streamsvm.connectors.settings.loading import load
from streamsvm.connectors.trainer import trainer

pytestmark = pytest.mark.usefixtures("no_waiting_for_the_disk")

NAMES = ("spam", "ham")
LOOP = {
    "counts": {
        "n_offered": 100, "n_asked": 9, "n_open": 1, "n_answered": 6, "n_positive": 2, "n_negative": 4, "skipped": 1,
        "ignored": 0, "expired": 0, "withdrawn": 1,
    },
    "curve": [],
}  # fmt: skip


@pytest.fixture
def settings(tmp_path):
    """A log that takes labels and questions."""
    (tmp_path / "app.toml").write_text('[log]\nlabels = "labels"\nquestions = "questions"\n' + config_text())
    (tmp_path / "log").mkdir()
    return load(tmp_path / "app.toml", {})


@pytest.fixture
def told(settings):
    """Write labels and questions, and read the answers of partition 0."""
    numbers = count()

    def told(*labels, questions=(), **changes):
        for reason, id_, margin in questions:
            query_id = f"q{next(numbers)}" + "-recheck" * (reason == "recheck")
            asked = {
                "query_id": query_id, "id": id_, "x": {}, "event": {}, "margin": margin, "score": 0.5, "reason": reason,
                "asked_at": 1, "expires_at": 2, "unusual": {}, "model": {},
            }  # fmt: skip
            append(settings, [asked], "questions", key=query_id.encode(), partition=0)
        append(settings, labels, "labels", partition=0)
        return answers.read_answers(load(settings.log.dir.parent / "app.toml", {}, changes.get("overrides", ())))[0]

    return told


def answer(id_, y, source="page:ann#1", *, at=0, **fields):
    said = {"op": "retract"} if y is None else {"y": y}
    return {"id": id_, **said, "source": source, "ts": 1767225600 + at, **fields}


# --- numbers ----------------------------------------------------------------------------------------------------------


def test_wilson_s_interval_covers_what_it_promises():
    rng = np.random.default_rng(0)
    for p, n in ((0.1, 20), (0.5, 30), (0.9, 60)):
        counts = rng.binomial(n, p, size=4000)
        bounds = {k: wilson(k, n) for k in set(counts.tolist())}
        inside = np.mean([bounds[k].low <= p <= bounds[k].high for k in counts.tolist()])
        assert 0.955 < inside <= 1.0, (p, n)
    assert wilson(0, 0)[1:] == (0.0, 1.0)
    assert wilson(7, 7)[::2] == (1.0, 1.0)


def test_the_interval_of_the_g_mean_holds_in_95_of_100_cases():
    rng = np.random.default_rng(1)
    hits, truth = 0, math.sqrt(0.7 * 0.95)
    for _ in range(400):
        y = rng.random(100) < 0.2
        guess = np.where(rng.random(100) < np.where(y, 0.7, 0.95), y, ~y)
        found = quality(list(zip(guess.tolist(), y.tolist(), strict=True))).g_mean
        hits += found.low <= truth <= found.high
    assert hits >= 380


def test_without_positives_the_g_mean_is_not_known():
    found = quality([(False, False)] * 10)
    assert (found.n_positive, found.n_negative, found.n_rejected) == (0, 10, 10)
    assert math.isnan(found.g_mean.value)
    assert (found.g_mean.low, found.g_mean.high) == (0.0, 1.0)


# --- from the log -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("selection", ["active", "mixed"])
def test_only_random_questions_are_compared_with_the_label_that_holds(told, selection):
    """A mixed selection explores far from the labelled events, which is not at random."""
    questions = [("audit", "a", 1.0), ("explore", "b", -1.0), ("boundary", "c", 1.0), ("audit", "d", -0.5)]
    found = told(
        answer("b", True), answer("a", True), answer("c", False), answer("d", False), answer("e", True),
        answer("a", False), answer("d", None),
        questions=questions,
        overrides=[f"labelling.selection={selection}"],
    )  # fmt: skip
    assert answers.compared(found) == [(False, True), (True, False)][selection == "mixed" :]


def test_corrections_change_the_class_also_after_a_retraction(told):
    found = told(
        answer("a", True), answer("a", True), answer("a", False, "page:bob#2"),
        answer("b", True), answer("b", None), answer("b", True),
        answer("c", True), answer("c", None), answer("c", False),
        {"id": "d", "op": "skip", "source": "page:ann#1"},
    )  # fmt: skip
    changed = [
        (one.entry.label.id, one.before.annotator, one.entry.annotator) for one in answers.corrections(found.entries)
    ]
    assert changed == [("a", "ann", "bob"), ("c", "ann", "ann")]


def test_a_retraction_takes_back_what_the_person_said(told):
    found = told(answer("a", True), answer("a", False, "page:bob#2"), answer("a", None), answer("b", True, ""))
    assert [(one.who, one.y) for one in answers.said(found.entries)] == [("page:bob#2", False)]


def test_the_pace_leaves_pauses_out(told):
    found = told(*(answer(f"e{i}", True, at=at) for i, at in enumerate((0, 60, 120, 4000, 4060))))
    hours, counts = answers.pace(found.entries)
    assert counts == [0, 1, 2, 3, 4, 5]
    assert hours[-1] == pytest.approx(180 / 3600)


def test_the_pace_counts_the_labels_that_hold(told):
    votes = [answer("a", True, f"page:{who}#1", query_id="q", at=at) for at, who in enumerate(("ann", "bob"))]
    found = told(*votes, overrides=["labelling.answers_per_question=2"])
    assert answers.pace(found.entries)[1] == [0, 0, 1]


def test_the_pace_does_not_count_what_was_taken_back(told):
    found = told(answer("a", True, at=0), answer("b", True, at=1), answer("a", None, at=2))
    assert answers.pace(found.entries)[1] == [0, 1, 2, 1]


def test_several_answers_to_a_question_decide_as_in_the_trainer(told):
    def vote(who, y, rev):
        return answer("a", y, f"page:{who}#1", query_id="q", rev=rev)

    votes = [vote("ann", True, 1), vote("bob", False, 2), vote("eve", False, 3), vote("bob", True, 4)]
    found = told(*votes, overrides=["labelling.answers_per_question=2"])
    assert [(entry.before, entry.after) for entry in found.entries] == [
        (None, None), (None, None), (None, False), (False, True),
    ]  # fmt: skip
    assert len(answers.corrections(found.entries)) == 1


def test_taking_back_the_answer_to_a_recheck_leaves_the_one_before(told):
    found = told(
        answer("a", True, query_id="q"),
        answer("a", False, query_id="q-recheck"), answer("a", None, query_id="q-recheck"),
        answer("b", True, query_id="r"), answer("b", None, query_id="r"),
        questions=[("audit", "a", 1.0), ("recheck", "a", -2.0)],
    )  # fmt: skip
    assert [entry.after for entry in found.entries] == [True, False, True, True, None]
    assert answers.compared(found) == [(True, True)]


def test_the_status_is_the_newest_readable_one(settings, told):
    for status in ({"remaining": 9}, {"remaining": 7}):
        append(settings, [{"status": status}], "questions", key=b"status", partition=0)
    assert told(answer("a", True)).status == {"remaining": 7}
    append(settings, [b"damaged"], "questions", key=b"status", partition=0)
    assert told().status == {}


# --- panels -----------------------------------------------------------------------------------------------------------


def panels(found, loop=LOOP):
    """The panels by name."""
    return {panel.name: panel for panel in labelling_panels(loop, found, NAMES)}


def answers_of_three_classes():
    """Eight answers and a correction; the model knew one of two random events of class c."""
    places = [Place(0, f"e{number}") for number in range(8)]
    given = [(place, "ann", None, y) for place, y in zip(places, "aaaaaaca", strict=True)]
    entries = []
    for number, (place, who, before, after) in enumerate([*given, (places[7], "bob", "a", "c")]):
        label = Label(place.id, number, after, None, None, None, "set", f"page:{who}#1")
        entries.append(Entry(label, place, number, 60_000 * number, before, after))
    guesses = {places[6]: Guess(1.0, None, "audit", label="c"), places[7]: Guess(1.0, None, "audit", label="a")}
    return Answers(entries, guesses)


def test_without_the_log_it_says_how_to_see_more():
    found = panels(None)
    for name in ("progress", "quality", "people", "corrections"):
        assert "streamsvm report CONFIG.toml" in " ".join(found[name].text)
    assert dict(found["progress"].facts)["Labels"] == "6: 2 spam, 4 ham"


def test_without_an_answer_nothing_is_claimed():
    found = panels(Answers())
    assert "No random question (audit)" in found["quality"].text[0]
    assert "No label says who gave it." in found["people"].text
    assert "No label was replaced" in found["corrections"].text[0]
    assert "takes answers to audit questions" in found["progress"].text[-1]
    facts = dict(found["progress"].facts)
    assert (facts["g-mean"], facts["Agreement"]) == ("–", "–")
    assert facts["Hours left"] == "not known without a label quota; the pace is not known"
    assert facts["Recall"] == "not known: no random question found one"


def test_what_a_lead_wants_to_know(settings, told):
    questions = [("audit", f"a{i}", 1.0 if i % 4 == 0 else -1.0) for i in range(40)]
    labels = [answer(f"a{i}", i % 4 == 0 or i == 1, at=6 * i) for i in range(40)]
    second = [answer(f"a{i}", i % 4 == 0, "page:bob#2", at=300 + 6 * i) for i in range(10)]
    status = {"remaining": 100, "missed": {"at_most": 9, "n_audited": 30, "n_found": 1, "n_unlabelled": 94}}
    append(settings, [{"status": status}], "questions", key=b"status", partition=0)
    found = panels(told(*labels, *second, questions=questions))
    facts = dict(found["progress"].facts)
    assert facts["Agreement"] == "90% of 10 events (Cohen's kappa 0.78)"
    low, high = wilson(10, 10)[1:]
    assert facts["Recall"].startswith(f"100% ({low:.0%} to {high:.0%}) on 10 random ones; with the labels at least ")
    assert facts["Hours left"].startswith("0.2, for 100 labels of the quota; ")
    assert facts["Corrected"] == "1 label"
    assert facts["g-mean"].startswith("100.0% (")
    assert found["progress"].text[-1] == (
        "With 95 % confidence, at most 9 of the 94 events without a label are spam that the model misses: of 30 random "
        "events that it took for ham, 1 were not."
    )
    assert found["people"].table[0] == ("annotator", "labels", "spam", "skipped", "agree", "per hour")
    assert found["people"].table[1][:5] == ("ann", "40", "11", "0", "90%")
    assert found["people"].table[2][:5] == ("bob", "10", "3", "0", "90%")
    assert found["people"].table[1][5] == "600"
    assert found["corrections"].table[1] == ("a1", "spam", "ham", "2026-01-01 00:05", "bob")
    assert "1 of them came from another person" in found["corrections"].text[0]
    assert "The model knew 10 of 10 spam and 30 of 30 ham." in found["quality"].text[0]


def test_with_several_classes_the_lead_hears_of_the_rarest():
    counts = LOOP["counts"] | {"of_classes": [["a", 6], ["b", 0], ["c", 2]], "n_asked": 9, "n_answered": 8}
    told = labelling_panels({"counts": counts, "curve": []}, answers_of_three_classes(), None)
    found = {panel.name: panel for panel in told}
    assert "quality" not in found
    facts = dict(found["progress"].facts)
    assert next(iter(facts)) == "Cost"
    assert facts["Cost"].startswith("4.0 answers, ")
    assert facts["Cost"].endswith(" for each “c”, the rarest class, found")
    assert facts["Recall"].startswith("50% (")
    assert facts["Labels"] == "8: 6 a, 2 c"
    assert found["people"].table[0] == ("annotator", "labels", "skipped", "agree", "per hour")
    assert found["corrections"].table[1][1:3] == ("a", "c")


@given(st.lists(st.integers(0, 60), max_size=14))
def test_columns_have_about_the_same_height(sizes):
    panels = [Panel(f"{place}", "", ["word"] * size) for place, size in enumerate(sizes)]
    first, second = in_columns(panels)
    for column in (first, second):
        assert column == sorted(column, key=panels.index)
    assert sorted([*first, *second], key=panels.index) == panels
    assert not panels or first[0] is panels[0]
    lines = [sum(panel.lines for panel in column) for column in (first, second)]
    assert abs(lines[0] - lines[1]) <= max((panel.lines for panel in panels), default=0)


def test_the_page_has_all_of_it(tmp_path, settings, capsys):
    rng = np.random.default_rng(0)
    points = rng.normal(size=(120, 2))
    events = [{"id": f"e{i}", "x": {"a": a, "b": b}} for i, (a, b) in enumerate(points.tolist())]
    append(settings, events)
    for round_ in range(3):
        trainer.run(settings)
        append(
            settings, [answer(f"e{i}", bool(points[i, 0] > 0)) for i in range(20 * round_, 20 * round_ + 20)], "labels"
        )
    trainer.run(settings)
    assert main(["report", str(tmp_path / "app.toml")]) == 0
    page = (tmp_path / "state" / "report.html").read_text()
    for part in ("progress", "quality", "people", "corrections", "labels", "run"):
        assert f'id="p0-{part}"' in page
    assert page.index('id="p0-progress"') < page.index('id="p0-run"')
    assert '<th scope="row">ann</th>' in page
    path, _ = write_report(tmp_path / "state")
    assert "The answers are in the log" in path.read_text()
