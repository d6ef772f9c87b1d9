"""ONNX: run by ONNX Runtime, it says what the description says."""

import json
import sys

import numpy as np
import pytest
from described import Twin
from exported import MODELS, answers_of, assert_alike, engine_rounding, model_of, rows_of

from streamsvm.export import to_json, to_onnx
from streamsvm.sklearn_api import LASVMClassifier

pytest.importorskip("onnx")


def answers(data, X):
    """What the graph says of the rows."""
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(data, providers=["CPUExecutionProvider"])
    kind = np.float64 if session.get_inputs()[0].type == "tensor(double)" else np.float32
    names = [output.name for output in session.get_outputs()]
    found = dict(zip(names, session.run(names, {"x": X.astype(kind)}), strict=True))
    return found["values"], found.get("probabilities"), found["label"].tolist()


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("double", [True, False], ids=["double", "float"])
def test_onnx_decides_as_the_description_says(name, double):
    rows, _ = rows_of(name, 200)
    twin = Twin(to_json(model_of(name)))
    found = answers(to_onnx(model_of(name), double), twin.table(rows))
    # 1000.1 in single precision has four digits behind the point; the coefficients of "fitted" add up to 275.
    single = {"far": 1e-4, "fitted": 2e-5}.get(name, 1e-5)
    assert_alike(found, twin.answers(rows), 1e-9 if double else single)
    assert_alike(found, answers_of(name, 200), engine_rounding(name) + (0.0 if double else single))


@pytest.mark.parametrize("labels", [[0, 1], [False, True], [7, -1], ["b", "a"]])
def test_labels_keep_their_kind(labels):
    X = np.arange(20.0).reshape(10, 2)
    y = np.array(labels)[(X[:, 0] > 9).astype(int)]
    _, _, found = answers(to_onnx(LASVMClassifier().fit(X, y)), X)
    assert found == y.tolist()
    assert set(map(type, found)) == {type(labels[0])}


def test_the_file_names_its_features_and_uses_standard_operators_only():
    import onnx

    made = onnx.load_from_string(to_onnx(model_of("rest")))
    told = {entry.key: json.loads(entry.value) for entry in made.metadata_props}
    assert told == {"features": model_of("rest").feature_names, "labels": model_of("rest").labels}
    assert [opset.domain for opset in made.opset_import] == [""]


def test_without_onnx_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"pip install 'streamsvm\[onnx\]'"):
        to_onnx(model_of("scaled"))
