"""A rerun comes to the bits of a trainer, although it predicts and learns many events in one call."""

import pytest
from logged import append
from shadows import configure, some_events

from streamsvm.connectors.trainer import processing, trainer
from streamsvm.connectors.trainer.rerun import Rerun, Stage
from streamsvm.connectors.trainer.state.digests import digests


@pytest.mark.parametrize("most", [1000, 5, 0], ids=["all", "some refused", "one by one"])
def test_a_rerun_is_its_trainer(tmp_path, monkeypatch, most):
    settings = configure(tmp_path, (), model={"budget": 40})
    append(settings, list(some_events(300)))
    expected = trainer.run(settings)[0]
    taught = processing.predict_and_teach

    def few(tasks, rows, state):
        return taught(tasks[:most], rows, state)

    monkeypatch.setattr(processing, "predict_and_teach", few)
    found = Rerun(settings, 0, tmp_path / "rerun").run(Stage(300, 0))
    assert digests(found) == digests(expected)
    assert found.version == expected.version
