"""`streamsvm predictions`: what the trainer or scorers predicted, as a file."""

import csv
import json

import numpy as np
import pytest
from logged import append


def test_predictions_of_the_trainer_or_of_scorers(tmp_path, call):
    (tmp_path / "app.toml").write_text("")
    for topic, label in ("predictions", "ham"), ("scores", "spam"):
        said = {"id": "a", "label": label, "score": 0.5, "margin": 0.25, "src": "events-0-0"}
        earlier = 300 * [said | {"label": "old"}]  # A process that is killed writes some again.
        append(tmp_path / "log", [*earlier, said], topic)
    for options, label in ((), "ham"), (("--scores",), "spam"):
        code, out, err = call("predictions", tmp_path / "app.toml", "--out", tmp_path / "p.csv", *options)
        assert (code, out[0].split()[:3], err) == (0, ["wrote", "1", "prediction"], [])
        with (tmp_path / "p.csv").open(newline="") as file:
            (row,) = csv.DictReader(file)
        assert row == {"id": "a", "label": label, "score": "0.5", "margin": "0.25", "src": "events-0-0"}


def test_a_trainer_that_began_anew_replaces_what_was_predicted_before(tmp_path, call):
    """Other settings need another state folder; the topic is the same, and has both."""
    (tmp_path / "app.toml").write_text("[decide]\nerror = 0.1\n")
    said = {"id": "a", "label": "ham", "score": 0.5, "margin": 0.25}
    old = [said | {"src": f"events-0-{at}"} for at in range(5)]
    new = [one | {"label": "spam", "decided": True, "labels": ["spam"]} for one in old[:4]]
    append(tmp_path / "log", old + new, "predictions")
    assert call("predictions", tmp_path / "app.toml", "--out", tmp_path / "p.csv")[0] == 0
    with (tmp_path / "p.csv").open(newline="") as file:
        rows = [(row["src"], row["label"], row["decided"]) for row in csv.DictReader(file)]
    spam = [(f"events-0-{at}", "spam", "yes") for at in range(4)]
    assert sorted(rows) == [*spam, ("events-0-4", "ham", "")]


def test_a_spreadsheet_shows_what_is_decided_in_words_and_a_program_gets_values(tmp_path, call):
    (tmp_path / "app.toml").write_text("[decide]\nerror = 0.1\n")
    said = {"id": "a", "label": "grün", "score": 0.5, "margin": 0.25}
    for at, labels in enumerate((["grün"], ["grün", "rot"], [True, False])):
        append(tmp_path / "log", [said | {"src": f"e-0-{at}", "decided": not at, "labels": labels}], "predictions")
    for suffix in ("csv", "jsonl"):
        assert call("predictions", tmp_path / "app.toml", "--out", tmp_path / f"p.{suffix}")[0] == 0
    with (tmp_path / "p.csv").open(newline="", encoding="utf-8") as file:
        told = [(row["decided"], row["labels"]) for row in csv.DictReader(file)]
    assert told == [("yes", "grün"), ("no", "grün; rot"), ("no", "1; 0")]
    rows = [json.loads(line) for line in (tmp_path / "p.jsonl").read_text().splitlines()]
    assert [(row["decided"], row["labels"]) for row in rows[:2]] == [(True, ["grün"]), (False, ["grün", "rot"])]


def test_records_that_are_no_predictions_are_passed_over_with_a_word(tmp_path, call):
    (tmp_path / "app.toml").write_text("")
    said = {"id": "a", "label": "ham", "score": 0.5, "margin": 0.25, "src": "events-0-0"}
    strange = {"src": None}, {"src": "events"}, {"src": f"events-0-{'9' * 5000}"}, {"score": "high"}, {"margin": [1]}
    foreign = [{**said, **other} for other in (*strange, {"score": 10**400}, {"decided": "yes"}, {"labels": 5})]
    append(tmp_path / "log", [b"hello", [said], *foreign, {**said, "score": 2**60 + 1}], "predictions")
    for suffix in (".jsonl", ".csv", ".parquet"):
        code, out, err = call("predictions", tmp_path / "app.toml", "--out", tmp_path / f"p{suffix}")
        assert (code, out[0].split()[:3]) == (0, ["wrote", "1", "prediction"])
        assert err == ["streamsvm: passed over 10 records without a prediction"]
    assert json.loads((tmp_path / "p.jsonl").read_text()) == said | {"score": 2**60 + 1}


@pytest.mark.parametrize("seed", range(5))
def test_where_models_take_turns_each_event_has_one_row(tmp_path, call, seed):
    """A challenger answers after the model that serves, and a killed process answers again."""
    (tmp_path / "app.toml").write_text("[[challenger]]\nname = 'new'\nshare = 0.5\n")
    rng = np.random.default_rng(seed)
    name_of = rng.choice(["model", "new"], 60)
    answers = [(offset, name) for cut in range(0, 60, 6) for name in ("model", "new") for offset in range(cut, cut + 6)]
    answers = [(offset, name) for offset, name in answers if name_of[offset] == name and offset % 7]
    again = int(rng.integers(len(answers)))
    answers = answers[:again] + answers[again // 2 :]
    said = {"id": "a", "label": True, "score": 0.5, "margin": 0.25}
    append(
        tmp_path / "log",
        [
            said | {"src": f"events-0-{100 + at}", "model": {"ver": 1, "offset": 1, "name": name}}
            for at, name in answers
        ],
        "predictions",
    )
    assert call("predictions", tmp_path / "app.toml", "--out", tmp_path / "p.csv")[0] == 0
    with (tmp_path / "p.csv").open(newline="") as file:
        rows = {row["src"]: row["model"] for row in csv.DictReader(file)}
        file.seek(0)
        n_rows = sum(1 for _ in file) - 1
    assert rows == {f"events-0-{100 + at}": str(name_of[at]) for at in range(60) if at % 7}
    assert n_rows == len(rows)
