"""The command ``export`` and its targets; test_libsvm.py has LIBSVM's format."""

import json
import time

import pytest

from streamsvm import LASVM, OneVsRest, WarmupScaler
from streamsvm.conformal import ConformalClassifier
from streamsvm.connectors.commands.export import _written
from streamsvm.connectors.logs.embedded import LocalLog
from streamsvm.connectors.records.models import Trained
from streamsvm.connectors.records.published import read_newest
from streamsvm.connectors.settings.loading import load
from streamsvm.connectors.trainer.trainer import run
from streamsvm.export import Named, to_c, to_java, to_javascript, to_json

ROWS = [{"a": float(i % 7), "b": float(i % 3)} for i in range(40)]


@pytest.fixture(scope="module")
def model():
    model = LASVM()
    model.learn_many(ROWS, [x["a"] > x["b"] for x in ROWS])
    return model


@pytest.mark.parametrize(
    ("to", "file", "write"),
    [
        ("c", "fraud.c", lambda model: to_c(model, "fraud")),
        ("java", "Fraud.java", lambda model: to_java(model, "Fraud")),
        ("js", "fraud.mjs", to_javascript),
        ("json", "fraud.json", to_json),
    ],
)
def test_each_target_is_what_the_library_writes(model, tmp_path, call, to, file, write):
    model.save(tmp_path / "m.ssvm")
    code, out, _ = call("export", tmp_path / "m.ssvm", "--to", to, "--out", tmp_path / file)
    assert (code, out) == (0, [f"wrote {model.n_support} support vectors to {tmp_path / file} as {to}"])
    assert (tmp_path / file).read_text(encoding="utf-8") == write(model)


def test_onnx(model, tmp_path, call):
    onnx = pytest.importorskip("onnx")
    model.save(tmp_path / "m.ssvm")
    assert call("export", tmp_path / "m.ssvm", "--to", "onnx", "--double", "--out", tmp_path / "m.onnx")[0] == 0
    assert onnx.load(tmp_path / "m.onnx").graph.input[0].type.tensor_type.elem_type == onnx.TensorProto.DOUBLE


def test_a_name_of_its_own(model, tmp_path, call):
    model.save(tmp_path / "m.ssvm")
    options = ("--to", "java", "--name", "com.example.Fraud", "--out", tmp_path / "Fraud.java")
    assert call("export", tmp_path / "m.ssvm", *options)[0] == 0
    assert (tmp_path / "Fraud.java").read_text().startswith("package com.example;")


def test_what_cannot_be_written_is_said_before_a_file_is(model, tmp_path, call):
    model.save(tmp_path / "m.ssvm")
    LASVM().save(tmp_path / "empty.ssvm")
    for given, said in (
        (("m.ssvm", "--to", "c", "--label", "cat"), "--label goes with --to libsvm only"),
        (("m.ssvm", "--to", "java", "--name", "my-model"), "name='my-model' must begin with a letter"),
        (("empty.ssvm", "--to", "json"), "it has not learned from both classes yet"),
    ):
        code, _, error = call("export", tmp_path / given[0], *given[1:], "--out", tmp_path / "out")
        assert code != 0
        assert said in error[0]
        assert not (tmp_path / "out").exists()


def test_the_scaler_of_a_trainer_is_part_of_the_file(call, tmp_path):
    from argparse import Namespace

    scaler, model = WarmupScaler(), OneVsRest(LASVM(gamma=0.5))
    for x in ROWS:
        scaler.learn_one(x)
        model.learn_one(scaler.transform_one(x), "high" if x["a"] > 3.0 else "low")
    options = Namespace(to="json", label=None, name=None, out=tmp_path / "m.json")
    told = json.loads(_written(Trained(model, scaler), options))
    shifts = {feature["name"]: (feature["shift"], feature["factor"]) for feature in told["features"]}
    assert shifts["a"] == pytest.approx(scaler.scale_of("a"))


def test_the_guarantee_of_a_model_that_decides_is_part_of_the_file(call, tmp_path):
    model = ConformalClassifier(LASVM(), error=0.2)
    for x in ROWS:
        model.learn_one(x, x["a"] > x["b"])
    model.save(tmp_path / "m.ssvm")
    assert call("export", tmp_path / "m.ssvm", "--to", "json", "--out", tmp_path / "m.json")[0] == 0
    assert json.loads((tmp_path / "m.json").read_text())["guarantee"]["error"] == 0.2
    code, out, _ = call("export", tmp_path / "m.ssvm", "--out", tmp_path / "m.model")
    assert code == 0
    assert out[0].endswith("the guarantee is left out: LIBSVM has none")


@pytest.mark.parametrize("error", [0.0, 0.1])
def test_the_classes_have_the_names_of_the_configuration(call, tmp_path, error):
    config = f'[label]\npositive = "yes"\nnegative = "no"\n[decide]\nerror = {error}\n[daemon]\nfollow = false\n'
    (tmp_path / "app.toml").write_text(config + 'publish_json = true\n[log]\nmodel = "models"\n')
    with LocalLog(tmp_path / "log") as log:
        log.create("events", 1)
        for i, x in enumerate(ROWS):
            log.produce("events", json.dumps({"id": i, "x": x, "y": "yes" if x["a"] > x["b"] else "no"}).encode())
    run(load(tmp_path / "app.toml", {}))
    for to, file in (("json", "m.json"), ("js", "m.mjs"), ("java", "M.java"), ("c", "m.c"), ("libsvm", "m.model")):
        assert call("export", tmp_path / "app.toml", "--to", to, "--out", tmp_path / file)[0] == 0
    assert json.loads((tmp_path / "m.json").read_text())["labels"] == ["no", "yes"]
    assert json.loads((tmp_path / "m.model.json").read_text())["labels"] == {"1": "yes", "-1": "no"}
    with LocalLog(tmp_path / "log") as log:
        published = json.loads(read_newest(log, "models", time.monotonic() + 20.0)["json-p0"].blob)
    assert published["labels"] == ["no", "yes"]
    assert json.loads((tmp_path / "m.json").read_text()) == published


def test_only_two_classes_can_be_named():
    model = OneVsRest(LASVM(gamma=0.5))
    model.learn_many(ROWS, ["high" if x["a"] > 3.0 else "low" for x in ROWS])
    with pytest.raises(ValueError, match="only False and True can be given names"):
        to_json(Named(model, "no", "yes"))


def test_the_trainer_of_a_state_folder_may_decide(call, tmp_path):
    (tmp_path / "app.toml").write_text("[decide]\nerror = 0.1\n[daemon]\nfollow = false\n")
    with LocalLog(tmp_path / "log") as log:
        log.create("events", 1)
        for i, x in enumerate(ROWS):
            log.produce("events", json.dumps({"id": i, "x": x, "y": x["a"] > x["b"]}).encode())
    run(load(tmp_path / "app.toml", {}))
    code, _, error = call("export", tmp_path / "app.toml", "--to", "json", "--out", tmp_path / "m.json")
    assert (code, error) == (0, [])
    assert json.loads((tmp_path / "m.json").read_text())["guarantee"]["error"] == 0.1
