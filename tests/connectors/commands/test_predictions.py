"""`streamsvm predictions`: what the trainer or scorers predicted, as a file."""

import csv

from logged import append


def test_predictions_of_the_trainer_or_of_scorers(tmp_path, call):
    (tmp_path / "app.toml").write_text("")
    for topic, label in ("predictions", "ham"), ("scores", "spam"):
        said = {"id": "a", "label": label, "score": 0.5, "margin": 0.25, "src": "events-0-0"}
        append(tmp_path / "log", [said, said], topic)  # A process that was killed writes some again.
    for options, label in ((), "ham"), (("--scores",), "spam"):
        code, out, err = call("predictions", tmp_path / "app.toml", "--out", tmp_path / "p.csv", *options)
        assert (code, out[0].split()[:3], err) == (0, ["wrote", "1", "prediction"], [])
        with (tmp_path / "p.csv").open(newline="") as file:
            (row,) = csv.DictReader(file)
        assert row == {"id": "a", "label": label, "score": "0.5", "margin": "0.25", "src": "events-0-0"}
