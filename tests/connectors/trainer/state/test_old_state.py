"""A state folder of version 0.1.0: its checkpoint and its journal load, and the trainer goes on as 0.1.0 did.

data/state-0.1.0.zip has a log and a state folder, as a trainer of 0.1.0 left them when it was killed in the midst of a
cut.  data/state-0.1.0.json tells what 0.1.0 itself had at the end of the log, when it was started again.
"""

import json
import zipfile
from contextlib import closing
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from logged import read

from streamsvm import WarmupScaler
from streamsvm.connectors.records.codec import Codec
from streamsvm.connectors.records.people.questions import OUTCOMES
from streamsvm.connectors.settings.loading import load
from streamsvm.connectors.settings.sections import DaemonSettings, Settings
from streamsvm.connectors.trainer import trainer
from streamsvm.connectors.trainer.state import journal
from streamsvm.connectors.trainer.state.checkpoint import CheckpointStore
from streamsvm.connectors.trainer.state.state import State
from streamsvm.connectors.trainer.state.stored_state import read_state

DATA = Path(__file__).parent / "data"
TOLD = json.loads((DATA / "state-0.1.0.json").read_text())
CONFIG = """\
[log]
dir = "log"
topic = "events"
labels = "labels"
predictions = "predictions"
questions = "questions"
estimates = "estimates"
[model]
algorithm = "lasvm"
C = 10.0
gamma = 0.5
tol = 0.001
admission = "violation"
cache_mb = 1.0
[labelling]
selection = "active"
stop = "never"
open = 4
[estimates]
loo = true
folds = 3
every = 20
memory = 30
share = 1e9
[daemon]
batch = 8
state_dir = "state"
checkpoint_records = 40
keep = 1
follow = false
"""
GRID = [{"a": float(a), "b": float(b)} for a in (-1, 0, 1, 2) for b in (-1, 0, 1, 2)]


@pytest.fixture
def settings(tmp_path):
    with zipfile.ZipFile(DATA / "state-0.1.0.zip") as archive:
        archive.extractall(tmp_path)
    (tmp_path / "app.toml").write_text(CONFIG)
    return load(tmp_path / "app.toml", {})


@pytest.fixture(autouse=True)
def _first_revision(monkeypatch):
    """To 0.1.0, a label without a revision had revision 0.  Now it replaces the label that holds."""
    decode = Codec.decode_label

    def of_old(self, record):
        label = decode(self, record)
        return label._replace(rev=0) if label.rev is None else label

    monkeypatch.setattr(Codec, "decode_label", of_old)


def asked_in(settings):
    """The ids of the questions, in the order in which they were asked."""
    records = read(settings, "questions")
    return [json.loads(record.value)["query_id"] for record in records if record.key != b"status" and record.value]


NEWER = {"erased": 0, "renamed": 0}  # counters that 0.1.0 did not have


def test_the_trainer_goes_on_as_0_1_0_did(settings):
    n_asked = len(asked_in(settings))
    state = trainer.run(settings)[0]
    np.testing.assert_allclose(state.model.decision_function_many(GRID), TOLD["decision_values"], atol=1e-6)
    assert (state.model.n_support, state.model.n_seen) == (TOLD["n_support"], TOLD["n_seen"])
    assert state.model.n_members >= TOLD["n_members"], "0.1.0 dropped members with coefficient 0 earlier"
    assert {name: list(state.scaler.scale_of(name)) for name in ("a", "b")} == TOLD["scale"]
    assert [state.offset, state.labels_offset] == TOLD["offsets"]
    assert {name: n for name, n in asdict(state.counters).items() if name != "seconds"} == TOLD["counters"] | NEWER
    assert asdict(state.join.counters) == TOLD["join"]
    assert state.labelling.counted(OUTCOMES) == TOLD["outcomes"]
    assert state.metrics.n_errors == TOLD["n_errors"] + 1, "0.1.0 predicted a whole batch before it learned from it"
    assert [row.n for row in state.history.rows] == TOLD["rows"]
    asked = asked_in(settings)
    assert len(asked) == len(TOLD["asked"])
    assert asked[:n_asked] == TOLD["asked"][:n_asked], "0.1.0 chose the later ones by a model that was not finished"
    estimates = [json.loads(record.value) for record in read(settings, "estimates")]
    assert [each["kind"] for each in estimates] == [told[0] for told in TOLD["estimates"]]
    for each, (_, offset, _) in zip(estimates, TOLD["estimates"], strict=True):
        assert offset <= each["offset"] <= offset + 8, "of the event itself; 0.1.0 knew the first one of its batch only"
    assert [each["n"] for each in estimates][-4:] == [30] * 4, "all that are remembered; 0.1.0 tested a fold at a time"
    predictions = {json.loads(record.value)["src"] for record in read(settings, "predictions")}
    assert len(predictions) == TOLD["n_predictions"]


def test_others_read_it_as_well(settings):
    (stored,) = read_state(settings.daemon.state_dir)
    assert (stored.name, stored.checkpoint.offsets) == ("events-0", {"events": 70, "labels": 53})
    assert stored.models.model.n_seen < TOLD["n_seen"]


def test_its_frozen_scale_says_how_far_features_are(settings):
    (stored,) = read_state(settings.daemon.state_dir)
    with closing(CheckpointStore(settings.daemon.state_dir / "p0", 1)) as store:
        state = State.from_checkpoint(stored.checkpoint, settings, store, 0)
    assert state.model.scale_of("a") == (0.0, 1.0)
    assert state.standardised({"a": 5.0}, None) == stored.scaler.transform_one({"a": 5.0})


def test_models_of_new_keys_do_not_scale_what_its_scaler_has_scaled(tmp_path):
    settings = Settings(daemon=DaemonSettings(per="key", state_dir=tmp_path))
    with closing(CheckpointStore(tmp_path / "p0", 1)) as store:
        state = State.new(settings, store, 0)
        assert state.models.trained(b"a key").model.scaling == "standard"
        state.scaler = WarmupScaler()
        again = State.from_checkpoint(state.to_checkpoint(settings)[0], settings, store, 0)
        assert again.models.trained(b"a key").model.scaling is None


def test_the_cuts_after_its_checkpoint_are_known(settings):
    (newest,) = (settings.daemon.state_dir / "p0").glob("journal-000002-*")
    cuts, n_tries = journal.read(newest)
    assert [(cut.events, cut.labels) for cut in cuts] == [(70, 61), (75, 64), (80, 67), (85, 70)]
    assert n_tries == 1
