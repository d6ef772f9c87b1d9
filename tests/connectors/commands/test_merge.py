"""`streamsvm merge`: files and state folders become one model; `streamsvm merger`: published models do."""

import json

import numpy as np
import pytest

from streamsvm import LASVM
from streamsvm.connectors.logs.embedded import LocalLog
from streamsvm.connectors.settings.loading import load
from streamsvm.connectors.trainer.trainer import run


@pytest.fixture
def examples():
    X = np.random.default_rng(0).normal(size=(400, 3))
    return X, X[:, 0] + 0.5 * X[:, 1] > 0


@pytest.fixture
def files(tmp_path, examples):
    """Two models that learned a half each."""
    X, y = examples
    paths = [tmp_path / "a.ssvm", tmp_path / "b.ssvm"]
    for path, ids in zip(paths, (np.arange(200), np.arange(200, 400)), strict=True):
        model = LASVM()
        model.learn_many(X[ids], y[ids], ids=ids)
        model.save(path)
    return paths


@pytest.fixture
def trained(tmp_path, examples):
    """A daemon that learned two partitions."""

    def train(settings=""):
        (tmp_path / "app.toml").write_text(f"[daemon]\nfollow = false\n{settings}\n")
        with LocalLog(tmp_path / "log") as log:
            log.create("events", 2)
            for i, (x, label) in enumerate(zip(*(part.tolist() for part in examples), strict=True)):
                event = {"id": i, "x": dict(zip("abc", x, strict=True)), "y": label}
                log.produce("events", json.dumps(event).encode(), key=b"ab"[i % 2 : i % 2 + 1], partition=i % 2)
        run(load(tmp_path / "app.toml", {}))
        return tmp_path / "state"

    return train


def test_files_become_one_model(tmp_path, call, files, examples):
    code, out, _ = call("merge", *files, "--out", tmp_path / "m.ssvm")
    model = LASVM.load(tmp_path / "m.ssvm")
    assert (code, out) == (
        0,
        [f"merged 2 models into {model.n_support} support vectors, written to {tmp_path / 'm.ssvm'}"],
    )
    assert model.n_seen == 400
    assert np.mean(model.predict_many(examples[0]) == examples[1]) > 0.95


@pytest.mark.usefixtures("no_waiting_for_the_disk")
def test_the_partitions_of_a_state_folder_become_one_model(tmp_path, call, trained, examples):
    assert call("merge", trained(), "--out", tmp_path / "m.ssvm")[0] == 0
    assert call("merge", tmp_path / "app.toml", "--out", tmp_path / "c.ssvm")[0] == 0
    model = LASVM.load(tmp_path / "m.ssvm")
    assert LASVM.load(tmp_path / "c.ssvm").n_seen == model.n_seen
    rows = [dict(zip("abc", x, strict=True)) for x in examples[0].tolist()]
    assert model.n_seen == 400
    assert np.mean(model.predict_many(rows) == examples[1]) > 0.95


@pytest.mark.usefixtures("no_waiting_for_the_disk")
def test_models_of_keys_are_not_merged(tmp_path, call, trained):
    code, _, err = call("merge", trained('per = "key"'), "--out", tmp_path / "m.ssvm")
    assert (code, "models of different keys are not merged" in err[0]) == (2, True)


def test_models_of_other_parameters_or_with_equal_ids_are_refused(tmp_path, call, files, examples):
    LASVM(C=3.0).save(tmp_path / "c.ssvm")
    code, _, err = call("merge", files[0], tmp_path / "c.ssvm", "--out", tmp_path / "m.ssvm")
    assert (code, "C=10.0 and C=3.0" in err[0]) == (1, True)
    other = LASVM()
    other.learn_many(-examples[0][:200], ~examples[1][:200])
    other.save(tmp_path / "d.ssvm")
    code, _, err = call("merge", files[0], tmp_path / "d.ssvm", "--out", tmp_path / "m.ssvm")
    assert (code, "or merge with --renumber" in err[0]) == (1, True)
    assert not (tmp_path / "m.ssvm").exists()
    assert call("merge", files[0], tmp_path / "d.ssvm", "--out", tmp_path / "m.ssvm", "--renumber")[0] == 0


@pytest.mark.usefixtures("no_waiting_for_the_disk")
def test_the_merger_merges_what_was_published(tmp_path, call, trained):
    trained('[log]\nmodel = "model"\nmerged = "merged"')
    config = tmp_path / "app.toml"
    assert call("merger", config)[:2] == (0, ["published 1 merged model on topic 'merged'"])
    code, _, err = call("merger", config, "--set", "log.merged=")
    assert (code, "log.merged = ''" in err[0]) == (2, True)
