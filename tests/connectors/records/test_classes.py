"""Labels of more than two classes: which values are one, and how predictions show them."""

import json

import numpy as np
import pytest

from streamsvm import LASVM, AutoLASVM, Mixture, OneVsRest
from streamsvm.connectors.logs.transport import Record
from streamsvm.connectors.records.classes import KnownClasses, Vocabulary
from streamsvm.connectors.records.codec import Codec
from streamsvm.connectors.records.formats.base import BadRecord
from streamsvm.connectors.records.models import Scores, Trained, mean, pack_model, unpack_model
from streamsvm.connectors.records.predictions import (
    NO_CLASS,
    ClassPrediction,
    ModelVersion,
    class_predictions,
    margin_of,
    predictions_of,
    write_prediction,
)
from streamsvm.estimators.inputs.named_rows import NamedRows

closed = Codec(classes=Vocabulary(["cat", "dog", 7]))
opened = Codec(classes=Vocabulary([], 5))


def record(value, headers=()):
    return Record("events", 0, 0, 0, None, value if isinstance(value, bytes) else json.dumps(value).encode(), headers)


@pytest.mark.parametrize(("given", "label"), [("cat", "cat"), (7, 7), ("7", 7), (7.0, 7)])
def test_a_label_is_a_text_or_a_whole_number(given, label):
    assert closed.decode(record({"id": 1, "x": {}, "y": given})).y == label
    assert closed.decode_label(record({"id": 1, "y": given})).y == label
    assert type(opened.decode_label(record({"id": 1, "y": given})).y) is type(label)


@pytest.mark.parametrize("given", [True, 1.5, "", " cat", "a\nb", "x" * 101, 10**18, None, ["cat"], "ignore"])
def test_anything_else_is_no_label(given):
    for codec in (closed, opened):
        with pytest.raises(BadRecord, match="bad-label"):
            codec.decode_label(record({"id": 1, "y": given}))


def test_a_class_that_is_not_listed_is_refused():
    with pytest.raises(BadRecord, match=r"one of label\.classes, got 'bird'"):
        closed.decode_label(record({"id": 1, "y": "bird"}))
    assert opened.decode_label(record({"id": 1, "y": "bird"})).y == "bird"


def test_texts_like_007_are_no_numbers():
    assert opened.decode_label(record({"id": 1, "y": "007"})).y == "007"
    assert opened.decode_label(record({"id": 1, "y": "-0"})).y == "-0"
    assert opened.decode_label(record({"id": 1, "y": "-3"})).y == -3


def test_packed_events_name_their_class_in_a_header():
    codec = Codec(classes=Vocabulary(["cat", "true", 1]), format="float32")
    for text, label in ((b"true", "true"), (b"1", 1), (b"cat", "cat")):
        event = codec.decode(record(np.float32([1.0]).tobytes(), [("sv-id", b"e"), ("sv-y", text)]))
        assert event.y == label
        assert type(event.y) is type(label)


def test_there_is_room_for_so_many_classes():
    known = KnownClasses(["a"], 2)
    for label in ("b", "a", "b"):
        known.admit(label)
    with pytest.raises(BadRecord, match="would be class 3"):
        known.admit("c")
    assert (known.labels, known.number_of("b"), known.label_of(1)) == (["a", "b"], 1, "b")
    with pytest.raises(ValueError, match="no class 2"):
        known.label_of(2)


# --- predictions ------------------------------------------------------------------------------------------------------


def taught(labels="abc"):
    model = OneVsRest(LASVM(gamma=1.0))
    rng = np.random.default_rng(0)
    for t in range(90):
        k = t % len(labels)
        model.learn_one({"u": k + 0.1 * rng.normal(), "v": float(k == 1)}, labels[k])
    return model


def test_a_prediction_is_the_model_s():
    model, xs = taught(), [{"u": 0.0, "v": 0.0}, {"u": 1.1, "v": 1.0}, {"u": 1.5}]
    for x, said in zip(xs, predictions_of(model, NamedRows.of(xs)), strict=True):
        values = model.decision_function_one(x)
        second, best = sorted(values.values())[-2:]
        assert said.label == model.predict_one(x) == max(said.probabilities, key=said.probabilities.get)
        assert said.values == pytest.approx(values)
        assert said.probabilities == pytest.approx(model.predict_proba_one(x))
        assert said.margin == pytest.approx((best - second) / 2)


def test_a_prediction_s_record():
    said = ClassPrediction("cat", 0.25, {"cat": 0.5, 7: 0.0}, {"cat": 0.75, 7: 0.25})
    event = closed.decode(record({"id": 1, "x": {}}))
    value = write_prediction(closed, event, said, ModelVersion(40, 64), "events-0-70")
    assert json.loads(value) == {
        "id": 1,
        "label": "cat",
        "score": 0.75,
        "margin": 0.25,
        "probabilities": {"cat": 0.75, "7": 0.25},
        "values": {"cat": 0.5, "7": 0.0},
        "model": {"ver": 40, "offset": 64},
        "src": "events-0-70",
    }


def test_a_model_that_has_learned_nothing_predicts_no_class():
    assert predictions_of(OneVsRest(LASVM()), NamedRows.of([{"u": 1.0}])) == [NO_CLASS]
    event = opened.decode(record({"id": 1, "x": {}}))
    assert json.loads(write_prediction(opened, event, NO_CLASS, ModelVersion(0, 0), "s"))["label"] is None


def test_a_late_label_meets_a_model_of_another_kind():
    """After a promotion, events wait whose predictions the model before has made."""
    x, plain = {"u": 1.0}, OneVsRest(LASVM())
    mixture = Mixture(OneVsRest(LASVM()))
    for model in (plain, mixture):
        for label in ("a", "b"):
            model.learn_one({"u": float(label == "a")}, label)
    (of_plain,), (of_mixture,) = (predictions_of(model, [x], to_be_learned=True) for model in (plain, mixture))
    values, said = mixture.margins_one(x)
    assert margin_of(of_mixture.decision, mixture) == (values, said)
    assert margin_of(of_mixture.decision, plain) == values
    assert margin_of(of_plain.decision, plain) == plain.decision_function_one(x)
    assert margin_of(of_plain.decision, mixture) is None


def test_a_single_class_has_no_lead():
    (said,) = class_predictions(Scores(["a"], np.array([[0.3]]), np.array([[1.0]])))
    assert said == ClassPrediction("a", 0.0, {"a": 0.3}, {"a": 1.0})


def test_the_label_is_the_most_probable_class():
    """Also of a mean of models, whose decision values may favour another class; the margin tells."""
    one, two = (
        Scores(["a", "b"], np.array([f]), np.array([p]))
        for f, p in (([2.0, 0.0], [0.6, 0.4]), ([0.0, 1.0], [0.1, 0.9]))
    )
    (said,) = class_predictions(mean([one, two]))
    assert (said.label, said.margin) == ("b", -0.25)


def test_a_mean_takes_a_class_that_a_model_does_not_know_for_absent():
    one = Scores(["a", "b"], np.array([[1.0, -1.0]]), np.array([[0.75, 0.25]]))
    two = Scores(["b", "c"], np.array([[0.0, 1.0]]), np.array([[0.25, 0.75]]))
    found = mean([one, two])
    assert found.labels == ["a", "b", "c"]
    assert found.values.tolist() == [[0.0, -0.5, 0.0]]
    assert found.probabilities.tolist() == [[0.375, 0.25, 0.375]]


def test_a_model_of_several_classes_can_be_published():
    model = taught()
    served = unpack_model(pack_model(Trained(model)))
    assert served.model.digest() == model.digest()
    for new in (OneVsRest(LASVM()), OneVsRest(AutoLASVM())):
        assert unpack_model(pack_model(Trained(new))).model.labels == []


@pytest.mark.parametrize(
    ("label", "said"),
    [
        ("Cat", "the new class 'Cat' looks like the class 'cat' in other letters"),
        ("c at", "the new class 'c at' looks like the class 'cat' in other letters"),
        ("nan", "the new class 'nan' looks like a label that is missing"),
        ("bird", ""),
    ],
)
def test_a_new_class_that_is_probably_a_mistake_is_spoken_of_once(caplog, label, said):
    classes = KnownClasses(["cat"], 5)
    for _ in range(2):
        classes.admit(label)
    assert [record.getMessage() for record in caplog.records] == ([said] if said else [])
