"""Decisions that are guaranteed: every target excludes the labels that the model excludes."""

import ctypes
import json
import shutil
import subprocess

import numpy as np
import pytest
from described import Twin
from exported import DECIDERS, answers_of, assert_alike, engine_rounding, model_of, rows_of
from programs import Compiled, java, run

from streamsvm import LASVM
from streamsvm.conformal import ConformalClassifier
from streamsvm.export import to_c, to_java, to_javascript, to_json, to_onnx

N = 200


def own_sets(name):
    return [list(labels) for labels in model_of(name).predict_set_many(rows_of(name, N)[0])]


def twin_of(name):
    return Twin(to_json(model_of(name)))


@pytest.mark.parametrize("name", DECIDERS)
def test_the_description_excludes_what_the_model_excludes(name):
    rows, _ = rows_of(name, N)
    twin = twin_of(name)
    assert_alike(twin.answers(rows), answers_of(name, N), engine_rounding(name))
    sets = twin.sets(rows)
    assert sets == own_sets(name)
    assert len({len(labels) for labels in sets}) > 1
    assert twin.told["guarantee"]["error"] == 0.1
    assert (twin.told["guarantee"]["correction"] is None) == (len(twin.told["labels"]) > 2)


@pytest.mark.parametrize("name", DECIDERS)
@pytest.mark.parametrize("options", [(), ("-DSTREAMSVM_FLOAT",)], ids=["double", "float"])
def test_c(tmp_path, name, options):
    rows, _ = rows_of(name, N)
    twin = twin_of(name)
    X, labels = twin.table(rows), twin.told["labels"]
    model = Compiled(to_c(model_of(name)), tmp_path, *options)
    assert_alike(model.answers(X, labels), twin.answers(rows), 1e-5 if options else 1e-9)
    places, sets = (ctypes.c_int * len(labels))(), []
    for x in X:
        n = model.library.model_predict_set(x.ctypes.data_as(ctypes.POINTER(ctypes.c_double)), places)
        sets.append([labels[place] for place in places[:n]])
    assert sets == own_sets(name)
    wrong = np.full(len(X[0]), np.inf)
    assert model.library.model_predict_set(wrong.ctypes.data_as(ctypes.POINTER(ctypes.c_double)), places) == -1


@pytest.mark.parametrize("name", DECIDERS)
def test_javascript(tmp_path, name):
    rows, _ = rows_of(name, N)
    _, _, found = run(to_javascript(model_of(name)), rows, tmp_path)
    assert_alike(found, twin_of(name).answers(rows), 1e-9)
    (tmp_path / "ask.mjs").write_text(
        'import { readFileSync } from "node:fs"; import { predictSet } from "./model.mjs";'
        'console.log(JSON.stringify(JSON.parse(readFileSync("rows.json")).map(predictSet)));'
    )
    told = subprocess.run([shutil.which("node"), "ask.mjs"], cwd=tmp_path, capture_output=True, check=True).stdout
    assert json.loads(told) == own_sets(name)


ASK = """
public final class Ask {
    static void ask(double[] values, double[] p, int place, int[] set, String[] texts) {
        System.out.println(java.util.Arrays.toString(values) + ";" + java.util.Arrays.toString(p) + ";" + place + ";"
                + java.util.Arrays.toString(set) + ";" + String.join(",", texts));
    }

    public static void main(String[] none) throws Exception {
        try (java.util.Scanner in = new java.util.Scanner(new java.io.File("rows.txt"))) {
            while (in.hasNextLine()) {
                String[] words = in.nextLine().split(" ");
                double[] x = java.util.Arrays.stream(words).skip(1).mapToDouble(Double::parseDouble).toArray();
                java.util.Map<String, Double> map = new java.util.HashMap<>();
%s
            }
        }
    }
}
"""
CASE = """
                if (words[0].equals("%s")) {
                    for (int j = 0; j < x.length; j++) map.put(%s.FEATURES[j], x[j]);
                    ask(%s.values(x), %s.probabilities(map), %s.decide(x), %s.predictSet(x), %s.predictSet(map));
                }
"""


@pytest.mark.long
def test_java(tmp_path):
    """All models at once: a compiler that starts takes a second."""
    lines, names = [], [f"Model{i}" for i in range(len(DECIDERS))]
    for own, name in zip(names, DECIDERS, strict=True):
        (tmp_path / f"{own}.java").write_text(to_java(model_of(name), own), encoding="utf-8")
        lines += [
            " ".join([own, *map(repr, x)]).replace("nan", "NaN")
            for x in twin_of(name).table(rows_of(name, N)[0]).tolist()
        ]
    (tmp_path / "rows.txt").write_text("\n".join(lines))
    (tmp_path / "Ask.java").write_text(ASK % "".join(CASE % ((own,) * 7) for own in names))
    java(tmp_path, "javac", "-Xlint:all", "-Werror", "Ask.java", *(f"{own}.java" for own in names))
    said = [line.split(";") for line in java(tmp_path, "java", "Ask").splitlines()]
    for i, name in enumerate(DECIDERS):
        labels, own = twin_of(name).told["labels"], said[N * i : N * i + N]
        values, p, places, sets = ([json.loads(each[k]) for each in own] for k in range(4))
        assert_alike((values, p, [labels[k] for k in places]), twin_of(name).answers(rows_of(name, N)[0]), 1e-9)
        sets = [[labels[k] for k in each] for each in sets]
        assert sets == own_sets(name)
        texts = [[str(y).lower() if isinstance(y, bool) else str(y) for y in each] for each in sets]
        assert texts == [each[4].split(",") for each in own]


@pytest.mark.parametrize("double", [True, False], ids=["double", "float"])
@pytest.mark.parametrize("name", [name for name in DECIDERS if "pairs" not in name])
def test_onnx(name, double):
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    rows, _ = rows_of(name, N)
    twin = twin_of(name)
    session = runtime.InferenceSession(to_onnx(model_of(name), double), providers=["CPUExecutionProvider"])
    x = {"x": twin.table(rows).astype(np.float64 if double else np.float32)}
    *found, sets = session.run(["values", "probabilities", "label", "set"], x)
    found[2] = found[2].tolist()
    assert_alike(found, twin.answers(rows), 1e-9 if double else 1e-5)
    assert [set(np.array(twin.told["labels"])[row].tolist()) for row in sets] == list(map(set, own_sets(name)))


def test_onnx_refuses_pairs():
    pytest.importorskip("onnx")
    with pytest.raises(ValueError, match="no probabilities of a OneVsOne, so it cannot decide"):
        to_onnx(model_of("decides pairs"))


def test_a_class_without_scores_is_never_excluded():
    model = ConformalClassifier(LASVM(gamma=1.0))
    for i in range(4):
        model.learn_one({"a": float(i % 2)}, i % 2 == 0)
    assert json.loads(to_json(model))["guarantee"] == {"error": 0.1, "thresholds": [0.0, 0.0], "correction": None}
