"""People rename, merge and remove classes while the trainer runs: its model, its labels and what comes late."""

import json

import numpy as np
import pytest
from fuse import run
from logged import append, change, read, read_json

from streamsvm.connectors.commands.cli import main
from streamsvm.connectors.records.classes import KnownClasses
from streamsvm.connectors.records.formats.base import BadRecord

from .test_several_classes import CENTRES, configure, some_events, without_labels


def opened(folder, room=1, **more):
    label = {"classes": (), "max_classes": len(CENTRES) + room}
    return configure(folder, log={"labels": "labels"}, label=label, **more)


def given(events, misspelt=()):
    """Labels, some of them with a slip in the name."""
    return [{"id": e["id"], "y": "dgo" if e["id"] in misspelt else e["y"], "rev": 10} for e in events]


def changed(op, old, new=None, rev=20):
    return {"op": op, "from": old, "to": new, "rev": rev, "source": "page:Ann#1"}


def held(state):
    labels = {event["id"]: state.join.label_of(event["id"]) for event in EVENTS}
    return {key: y for key, y in labels.items() if y is not None}


EVENTS = list(some_events(80))
DOGS = [event["id"] for event in EVENTS if event["y"] == "dog"]


def test_a_merged_class_is_one_with_the_other_in_model_labels_and_late_labels(tmp_path):
    settings = opened(tmp_path)
    append(settings, without_labels(EVENTS))
    append(settings, given(EVENTS[:60], misspelt=DOGS[::2]), "labels")
    append(settings, [changed("merge", "dgo", "dog")], "labels")
    append(settings, given(EVENTS[60:], misspelt=DOGS), "labels")  # late, by the old name
    append(settings, [{"id": DOGS[0], "y": "dgo", "rev": 5}], "labels")  # and older than what holds
    state = run(settings)
    assert held(state) == {event["id"]: event["y"] for event in EVENTS}
    assert "dgo" not in state.model.labels
    assert set(state.model.labels) == set(state.classes.present) == set(CENTRES)
    assert state.counters.bad == 0
    number = state.classes.number_of("dgo")
    assert state.metrics.rolling().counts[number].sum() == 0


def test_it_predicts_about_as_if_nothing_had_been_misspelt(tmp_path):
    answers = []
    for folder, misspelt in ((tmp_path / "a", ()), (tmp_path / "b", DOGS[::2])):
        settings = opened(folder)
        append(settings, without_labels(EVENTS))
        append(settings, given(EVENTS, misspelt), "labels")
        if misspelt:
            append(settings, [changed("rename", "dgo", "dog")], "labels")  # there is one: it merges
        model = run(settings).model
        model.finish()
        answers.append([model.predict_one(event["x"]) for event in EVENTS])
    assert np.mean([one == other for one, other in zip(*answers, strict=True)]) > 0.95


def test_a_renamed_class_keeps_the_model_bit_for_bit(tmp_path):
    plain, renamed = opened(tmp_path / "a"), opened(tmp_path / "b")
    for settings in (plain, renamed):
        append(settings, without_labels(EVENTS))
        append(settings, given(EVENTS[:60]), "labels")
    append(renamed, [changed("rename", "cat", "tiger")], "labels")
    before, after = run(plain), run(renamed)
    assert after.model.labels == ["tiger" if label == "cat" else label for label in before.model.labels]
    values = [state.model.decision_function_many([e["x"] for e in EVENTS]) for state in (before, after)]
    np.testing.assert_array_equal(*values)
    assert "cat" not in held(after).values()
    assert list(held(after).values()).count("tiger") == list(held(before).values()).count("cat")


def test_a_removed_class_takes_its_labels_with_it_and_may_come_again(tmp_path):
    settings = opened(tmp_path)
    append(settings, without_labels(EVENTS))
    append(settings, given(EVENTS[:60], misspelt=DOGS[:3]), "labels")
    append(settings, [changed("remove", "dgo"), {"id": DOGS[3], "y": "dgo", "rev": 30}], "labels")
    state = run(settings)
    assert not {*DOGS[:4]} & held(state).keys()
    assert "dgo" not in state.model.labels
    assert not set(DOGS[:4]) & set(state.model.support_ids.tolist())
    append(settings, [changed("restore", "dgo", "dgo", 40), {"id": DOGS[3], "y": "dgo", "rev": 50}], "labels")
    state = run(settings)
    assert held(state)[DOGS[3]] == "dgo"
    assert "dgo" in state.model.labels
    assert state.counters.bad == 0


def test_a_class_comes_again_only_if_there_is_room():
    known = KnownClasses(["cat", "dog"], 2)
    known.make_way("cat", None)
    known.admit("bird")
    with pytest.raises(BadRecord, match="max_classes"):
        known.make_way("cat", "cat")
    assert known.present == ["dog", "bird"]
    known.make_way("bird", "cat")
    assert known.present == ["cat", "dog"]


def test_a_typo_no_longer_uses_a_place(tmp_path):
    settings = opened(tmp_path, room=0)
    append(settings, without_labels(EVENTS))
    append(settings, [{"id": 0, "y": "dgo"}, {"id": 1, "y": "cat"}, {"id": 2, "y": "bird"}], "labels")
    append(settings, [changed("rename", "dgo", "dog")], "labels")
    append(settings, [{"id": 3, "y": name} for name in sorted(set(CENTRES) - {"cat", "bird", "dog"})], "labels")
    state = run(settings)
    assert state.counters.bad == 0
    assert len(state.classes.present) == len(CENTRES)


@pytest.mark.parametrize(
    "record",
    [changed("merge", "unicorn", "cat"), changed("rename", "cat", None), changed("remove", "cat", "dog"),
     {"op": "merge", "from": "cat", "to": "dog", "rev": "x", "source": "a"}],
)  # fmt: skip
def test_a_damaged_change_is_a_dead_letter(record, tmp_path):
    settings = opened(tmp_path)
    append(settings, without_labels(EVENTS))
    append(settings, [*given(EVENTS[:40]), record], "labels")
    state = run(settings)
    assert [dict(letter.headers)["sv-dlq-reason"] for letter in read(settings, "dlq")] == [b"bad-label"]
    assert "cat" in state.model.labels


def test_a_restart_between_goes_on_alike_however_the_records_are_cut(tmp_path):
    found = []
    for folder, batch, pause in (("a", 16, False), ("b", 16, True), ("c", 3, False)):
        settings = change(opened(tmp_path / folder), daemon={"batch": batch})
        append(settings, without_labels(EVENTS))
        append(settings, given(EVENTS[:50], misspelt=DOGS[::2]), "labels")
        if pause:
            run(settings)
        append(settings, [changed("merge", "dgo", "dog")], "labels")
        if pause:
            run(settings)
        append(settings, given(EVENTS[50:], misspelt=DOGS), "labels")
        state = run(settings)
        found.append((state.model.digest(), held(state), state.join.counters, state.classes.labels))
    assert found[0] == found[1] == found[2]


def test_the_file_of_labels_follows_and_the_answers_keep_what_they_said(tmp_path):
    settings = opened(tmp_path)
    append(settings, without_labels(EVENTS))
    append(settings, [*given(EVENTS[:20], misspelt=DOGS), changed("rename", "dgo", "hound")], "labels")
    run(settings)
    (tmp_path / "app.toml").write_text(
        f'[log]\ndir = "{settings.log.dir}"\nlabels = "labels"\n[label]\nmax_classes = 4\n'
        f'[daemon]\nstate_dir = "{settings.daemon.state_dir}"\n'
    )
    for name, flags in (("now", []), ("said", ["--history"])):
        assert main(["labels", str(tmp_path / "app.toml"), "--out", str(tmp_path / f"{name}.jsonl"), *flags]) == 0
    now, said = (
        {row["id"]: row["y"] for row in map(json.loads, (tmp_path / f"{name}.jsonl").read_text().splitlines())}
        for name in ("now", "said")
    )
    assert set(now.values()) == {"hound" if y == "dgo" else y for y in said.values()}
    assert "dgo" in said.values()
    assert read_json(settings, "labels")[DOGS[0]]["y"] == "dgo"
