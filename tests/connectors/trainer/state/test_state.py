"""What the state of a partition says of its events."""

from contextlib import closing

import numpy as np
import pytest

from streamsvm import AutoLASVM
from streamsvm.connectors.settings.sections import DaemonSettings, Settings
from streamsvm.connectors.trainer.state.checkpoint import CheckpointStore
from streamsvm.connectors.trainer.state.state import State


@pytest.mark.long
def test_weights_of_the_features_do_not_change_how_far_they_are(tmp_path):
    X = np.random.default_rng(0).normal(size=(5000, 10))
    model = AutoLASVM(budget=60, on_budget="merge")
    model.learn_many(X, np.sin(2.0 * X[:, 0]) > 0.0)
    assert model.feature_weights_[1] < 0.5
    settings = Settings(daemon=DaemonSettings(per="partition", state_dir=tmp_path))
    with closing(CheckpointStore(tmp_path / "p0", 1)) as store:
        state = State.new(settings, store, 0, model)
    assert state.standardised({1: 2.0}, None)[1] == pytest.approx(2.0, abs=0.3)
