"""What could be decided alone, as the doctor says."""

import numpy as np
import pytest
from logged import append, config_text, some_events

from streamsvm.connectors.commands import cli
from streamsvm.connectors.commands.doctor.decisions import decidable


@pytest.mark.parametrize("error", [0.02, 0.05, 0.2])
def test_of_each_class_at_most_that_share_is_decided_wrongly(error):
    rng = np.random.default_rng(1)
    labels = rng.random(2000) < 0.3
    margins = rng.normal(np.where(labels, 1.0, -1.0))
    (share,) = decidable(margins, labels, error)
    lowest, highest = np.sort(margins[labels])[int(error * labels.sum())], np.sort(-margins[~labels])
    decided = [m > -highest[int(error * (~labels).sum())] if m > 0 else m < lowest for m in margins]
    assert share == pytest.approx(np.mean(decided), abs=0.02)
    for label in (False, True):
        wrong = np.array(decided) & ((margins > 0) != label) & (labels == label)
        assert wrong.sum() <= error * (labels == label).sum() + 1


def test_few_labels_say_nothing():
    margins, labels = np.linspace(-1.0, 1.0, 400), np.arange(400) >= 200
    assert list(decidable(margins, labels, 0.02)) == []
    assert list(decidable(margins, labels, 0.05)) == [pytest.approx(0.99, abs=0.02)]


def test_the_doctor_says_what_could_be_decided(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "app.toml").write_text(config_text(batch=64))
    append(tmp_path / "log", some_events(600))
    assert cli.main(["run", "app.toml"]) == 0
    capsys.readouterr()
    cli.main(["doctor", "app.toml"])
    assert "decisions: p0 could decide " in capsys.readouterr().out
    cli.main(["doctor", "app.toml", "--set", "decide.error=0.1"])
    assert "could decide" not in capsys.readouterr().out
