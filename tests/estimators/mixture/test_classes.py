"""`Mixture` of several classes: what it predicts, replays and keeps."""

import numpy as np
import pandas as pd
import pytest
from river import datasets

import streamsvm
from streamsvm import LASVM, AutoLASVM, Mixture, OneVsOne, OneVsRest, SnapshotError
from streamsvm.core.saving import snapshot
from streamsvm.estimators.mixture.mixture import MulticlassMixture
from tests.helpers.river_checks import hold

SEGMENTS = list(datasets.ImageSegments().take(300))  # the last of its seven classes comes as number 32
MODELS = {
    "rest": lambda: OneVsRest(LASVM()),
    "pairs": lambda: OneVsOne(LASVM()),
    "tuned": lambda: OneVsRest(AutoLASVM()),
}


def lagging(n):
    """Three classes: the next one mostly follows the last one, whatever the features are."""
    rng, y = np.random.default_rng(0), [0]
    for _ in range(n - 1):
        y.append((y[-1] + 1) % 3 if rng.random() < 0.9 else int(rng.integers(3)))
    return [({"a": float(v)}, "abc"[c]) for v, c in zip(rng.normal(size=n), y, strict=True)]


def test_it_learns_what_the_model_alone_does_not():
    right = {}
    for model in (OneVsRest(LASVM()), Mixture(OneVsRest(LASVM()))):
        right[type(model)] = 0
        for x, y in lagging(600):
            right[type(model)] += model.predict_one(x) == y
            model.learn_one(x, y)
    assert right[MulticlassMixture] > right[OneVsRest] + 150


def test_probabilities_are_of_all_classes_and_add_up_to_one():
    mixture = Mixture(OneVsRest(LASVM()))
    assert mixture.predict_one({"a": 1.0}) is None
    assert mixture.predict_proba_one({"a": 1.0}) == {}
    assert mixture.predict_proba_many([{"a": 1.0}]).shape == (1, 0)
    for x, y in SEGMENTS[:60]:
        mixture.learn_one(x, y)
        p = mixture.predict_proba_one(x)
        assert list(p) == mixture.labels
        assert sum(p.values()) == pytest.approx(1.0)
        assert p[mixture.predict_one(x)] == max(p.values())
        assert mixture.decision_function_one(x) == pytest.approx({label: np.log(q) for label, q in p.items()})
    assert set(mixture.shares_) == {y for _, y in SEGMENTS[:60]}


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_a_batch_gives_the_mixture_of_a_loop(make):
    one, many, xs = Mixture(make()), Mixture(make()), [x for x, _ in SEGMENTS[:150]]
    for x, y in SEGMENTS[:150]:
        one.predict_one(x)
        one.learn_one(x, y)
    for at in range(0, 150, 40):
        part = SEGMENTS[at : min(at + 40, 150)]
        many.learn_many(pd.DataFrame([x for x, _ in part]), pd.Series([y for _, y in part], name="kind"))
    assert many.digest() == one.digest()
    frame = pd.DataFrame(xs[:20])
    assert many.predict_many(frame).tolist() == [one.predict_one(x) for x in xs[:20]]
    assert many.predict_many(frame).name == "kind"
    p = many.predict_proba_many(frame)
    assert p.to_dict("records") == [one.predict_proba_one(x) for x in xs[:20]]
    np.testing.assert_allclose(np.exp(many.decision_function_many(frame)), p.to_numpy())


@pytest.mark.parametrize("cut", [0, 1, 31, 200])
def test_a_saved_mixture_goes_on_as_the_original(cut, tmp_path):
    """Also where classes have come that the spans have not begun with."""
    mixture = Mixture(OneVsRest(LASVM()))
    for x, y in SEGMENTS[:cut]:
        mixture.learn_one(x, y)
    mixture.save(tmp_path / "mixture")
    again = streamsvm.load(tmp_path / "mixture")
    assert type(again) is MulticlassMixture
    for x, y in SEGMENTS[cut:260]:
        assert again.predict_proba_one(x) == mixture.predict_proba_one(x)
        for one in (again, mixture):
            one.learn_one(x, y)
    assert again.digest() == mixture.digest()


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_late_labels_are_learned_with_what_was_said_of_their_records(make):
    """Also of classes that had not come, in a batch and after a restart."""
    late, batch, said = Mixture(make()), Mixture(make()), []
    for i, (x, _) in enumerate(SEGMENTS[:150]):
        said.append(late.margins_one(x))
        if i >= 30:
            late.learn_one(*SEGMENTS[i - 30], margin=said[i - 30])
    for at in (0, 60):
        xs, ys = zip(*SEGMENTS[at : at + 60], strict=True)
        batch.learn_many(xs, ys, margins=said[at : at + 60])
        batch = Mixture.from_bytes(batch.to_bytes())
    assert batch.digest() == late.digest()
    plain = Mixture(make())
    plain.learn_many(*zip(*SEGMENTS[:120], strict=True))
    assert plain.digest() != late.digest()


@pytest.mark.parametrize("margin", [1.0, ({}, {"path": [0.5]}), ({}, {"path": [2.0] * 9}), ({}, 1), ()])
def test_what_was_said_must_be_complete(margin):
    mixture = Mixture(OneVsRest(LASVM()))
    mixture.learn_many(*zip(*SEGMENTS[:40], strict=True))
    before = mixture.digest()
    with pytest.raises(ValueError, match="margins_one"):
        mixture.learn_one(*SEGMENTS[40], margin=margin)
    assert mixture.digest() == before


def test_forgetting_and_correcting_are_exact_in_the_model():
    mixture, model = Mixture(OneVsRest(LASVM(), ["sky"])), OneVsRest(LASVM(), ["sky"])
    for one in (mixture, model):
        one.learn_many(*zip(*SEGMENTS[:100], strict=True), ids=range(100))
    ids = model.support_ids[:4].tolist()
    for one in (mixture, model):
        assert one.forget(ids[:2]) == 2
        assert one.relabel(ids[2:], ["sky", "a new class"]) == 2
    assert mixture._model.digest() == model.digest()
    assert mixture.labels[0] == "sky"
    assert list(mixture.predict_proba_one(SEGMENTS[0][0]))[-1] == "a new class"


def test_a_refused_example_leaves_no_trace():
    mixture = Mixture(OneVsRest(LASVM()))
    mixture.learn_many(*zip(*SEGMENTS[:50], strict=True))
    before, x = mixture.digest(), SEGMENTS[50][0]
    for given in ((x | {"new": "red"}, "sky"), (x, None), (x, "another class", -1.0)):
        with pytest.raises((ValueError, TypeError)):
            mixture.learn_one(*given)
        assert mixture.digest() == before


def test_a_spoiled_snapshot_is_refused():
    mixture = Mixture(OneVsRest(LASVM()))
    mixture.learn_many(*zip(*SEGMENTS[:70], strict=True))
    meta, arrays = snapshot.unpack(mixture.to_bytes(), "Mixture")
    own = {name: array for name, array in arrays.items() if array.size and not name.startswith("model.")}
    spoiled = [(meta | {"n_classes": n}, arrays) for n in (0, 8, 10**9)] + [(meta | {"n_fitted": 8}, arrays)]
    spoiled += [(meta, arrays | {name: array[:-1]}) for name, array in own.items()]
    spoiled += [
        (meta, arrays | {name: np.full(arrays[name].shape, np.nan)}) for name in ("stack.w", "class3.rule.bins")
    ]
    for content in spoiled:
        with pytest.raises(SnapshotError):
            Mixture.from_bytes(snapshot.pack("Mixture", *content))


def test_a_further_class_takes_less_than_a_megabyte():
    sizes = []
    for n_classes in (3, 6):
        mixture = Mixture(OneVsRest(LASVM(window=20)))
        for t in range(280):
            mixture.learn_one({"a": float(t % 7), "b": float(t % 5)}, t % n_classes)
        sizes.append(len(mixture.to_bytes()))
    assert sizes[1] - sizes[0] < 3 * 500_000


@pytest.mark.long
def test_every_check_of_river_passes():
    hold(Mixture(OneVsRest(LASVM())), 62)
