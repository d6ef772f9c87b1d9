"""`Mixture`: what it predicts, replays and keeps; the parts are tested in test_experts."""

import numpy as np
import pandas as pd
import pytest
from river import linear_model, preprocessing

import streamsvm
from streamsvm import LASVM, AutoLASVM, Mixture, OneVsRest, SnapshotError
from streamsvm.core.saving import snapshot
from streamsvm.estimators.mixture.fitting import Fit
from streamsvm.export.description import describe


def accuracy(model, stream):
    """Share of examples that are predicted rightly before they are learned."""
    right = 0
    for x, y in stream:
        right += model.predict_one(x) == y
        model.learn_one(x, y)
    return right / len(stream)


def records(X, y):
    return [({f"f{j}": float(v) for j, v in enumerate(row)}, bool(label)) for row, label in zip(X, y, strict=True)]


def lagging(n=1500):
    """Labels that follow the last one, whatever the features are."""
    rng, y = np.random.default_rng(0), [True]
    for _ in range(n - 1):
        y.append(y[-1] if rng.random() < 0.9 else not y[-1])
    return records(rng.normal(size=(n, 3)), y)


def turning(n=2000):
    """A linear rule in 20 features that turns."""
    rng = np.random.default_rng(1)
    X, angle = rng.normal(size=(n, 20)), np.linspace(0.0, np.pi, n)
    return records(X, X[:, 0] * np.cos(angle) + X[:, 1] * np.sin(angle) > 0.0)


def few_of_many(n=3000):
    """Three of twelve features decide, by a curved rule."""
    X = np.random.default_rng(2).normal(size=(n, 12))
    return records(X, np.sin(2.0 * X[:, 0]) * X[:, 1] + 0.5 * X[:, 2] > 0.0)


@pytest.mark.parametrize(("stream", "gain"), [(lagging, 0.25), (turning, 0.03), (few_of_many, 0.04)])
def test_it_learns_what_the_model_alone_does_not(stream, gain):
    assert accuracy(Mixture(LASVM(C=1.0)), stream()) > accuracy(LASVM(C=1.0), stream()) + gain


def test_it_is_not_behind_a_linear_model_where_that_is_best():
    stream = turning()
    best = preprocessing.StandardScaler() | linear_model.PAClassifier(C=0.01)
    assert accuracy(Mixture(), stream) > accuracy(best, stream) - 0.01


def test_its_probabilities_are_calibrated():
    """Of noisy labels: 20 % are wrong, so no probability is far from what happens."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(4000, 4))
    stream, model = records(X, (X[:, 0] > 0.0) ^ (rng.random(4000) < 0.2)), Mixture(LASVM(C=1.0))
    p = []
    for x, y in stream:
        p.append(model.predict_proba_one(x)[True])
        model.learn_one(x, y)
    p, y = np.array(p[500:]), np.array([y for _, y in stream[500:]])
    bins = np.minimum((p * 10).astype(int), 9)
    error = sum(abs(p[bins == b].mean() - y[bins == b].mean()) * np.mean(bins == b) for b in set(bins.tolist()))
    assert error < 0.03


# --------------------------------------------------------------------------------------------------------------- replay


@pytest.mark.parametrize("model", [None, LASVM(C=1.0)])
def test_a_batch_gives_the_mixture_of_a_loop(model):
    stream = few_of_many(700)
    one, many = Mixture(model and model.clone()), Mixture(model and model.clone())
    for x, y in stream:
        one.predict_one(x)
        one.learn_one(x, y)
    for at in range(0, 700, 90):
        many.learn_many(*zip(*stream[at : at + 90], strict=True))
    assert many.digest() == one.digest()
    X, y = np.array([list(x.values()) for x, _ in stream]), [y for _, y in stream]
    names = list(stream[0][0])
    frame = Mixture(model and model.clone())
    frame.learn_many(pd.DataFrame(X, columns=names), pd.Series(y))
    assert frame.digest() == one.digest()
    p = [one.predict_proba_one(x)[True] for x, _ in stream[:50]]
    assert one.predict_proba_many(pd.DataFrame(X[:50], columns=names))[True].tolist() == p
    assert one.predict_many(pd.DataFrame(X[:50], columns=names)).tolist() == [value > 0.5 for value in p]


@pytest.mark.parametrize("cut", [0, 1, 31, 32, 200, 517])
def test_a_saved_mixture_goes_on_as_the_original(cut, tmp_path):
    stream, mixture = few_of_many(600), Mixture(LASVM())
    for x, y in stream[:cut]:
        mixture.learn_one(x, y)
    mixture.save(tmp_path / "mixture")
    again = streamsvm.load(tmp_path / "mixture")
    assert type(again) is Mixture
    for x, y in stream[cut:]:
        assert again.predict_proba_one(x) == mixture.predict_proba_one(x)
        for one in (again, mixture):
            one.learn_one(x, y)
    assert again.digest() == mixture.digest()


def test_predicting_changes_nothing_and_a_changed_example_is_predicted_anew():
    stream, mixture = few_of_many(300), Mixture(LASVM())
    mixture.learn_many(*zip(*stream, strict=True))
    before = mixture.digest()
    x = dict(stream[0][0])
    first = mixture.predict_proba_one(x)
    x["f0"] += 1.0
    assert mixture.predict_proba_one(x) != first
    assert mixture.digest() == before


def test_features_that_come_later_get_a_column_and_further_ones_do_not_matter():
    mixture = Mixture(LASVM())
    for t in range(200):
        x = {"a": float(t % 3)} | ({"b": float(t % 5)} if t > 20 else {}) | {f"w{t}": 1.0}
        mixture.learn_one(x, t % 3 == 1)
    assert len(mixture._experts.columns) == 128
    assert 0.0 < mixture.predict_proba_one({"a": 1.0, "unknown": 2.0})[True] < 1.0


def test_a_limit_of_features_is_that_of_the_model():
    mixture = Mixture(LASVM())
    mixture.max_features = 2
    mixture.learn_one({"a": 1.0, "b": 2.0}, True)
    with pytest.raises(ValueError, match="at most 2"):
        mixture.learn_one({"c": 1.0}, False)
    assert mixture.feature_names == ["a", "b"]


@pytest.mark.parametrize("step", ["make_room", "note_basis"])
@pytest.mark.parametrize("model", [LASVM(), OneVsRest(LASVM())])
def test_an_interrupted_mixture_can_be_saved_and_goes_on(monkeypatch, model, step):
    """Also if Ctrl-C comes while its experts are fitted anew."""
    mixture, calls, taken = Mixture(model), [], getattr(Fit, step)

    def interrupted(*arguments):
        calls.append(True)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return taken(*arguments)

    monkeypatch.setattr(Fit, step, interrupted)
    stream = few_of_many(700)
    with pytest.raises(KeyboardInterrupt):
        mixture.learn_many(*zip(*stream, strict=True))
    loaded = type(mixture).from_bytes(mixture.to_bytes())
    for one in (mixture, loaded):
        one.learn_many(*zip(*stream[:200], strict=True))
    assert loaded.digest() == mixture.digest()
    assert 0.0 < mixture.predict_proba_one(stream[0][0])[True] < 1.0


def test_a_refused_example_leaves_no_trace():
    mixture = Mixture(LASVM())
    mixture.learn_many(*zip(*few_of_many(50), strict=True))
    before = mixture.digest()
    for x, y, others in (
        ({"f0": "red"}, True, {}),
        ({"f0": 1.0, "new": 2.0}, "yes", {}),
        ({"f0": 1.0, "new": 2.0}, True, {"w": -1.0}),
    ):
        with pytest.raises((ValueError, TypeError)):
            mixture.learn_one(x, y, **others)
        assert mixture.digest() == before


def test_forgetting_leaves_the_model_as_if_it_had_not_learned_and_says_how_many_left():
    stream = few_of_many(200)
    mixture, model = Mixture(LASVM()), LASVM()
    for one in (mixture, model):
        one.learn_many(*zip(*stream, strict=True))
    ids = model.support_ids[:3].tolist()
    assert mixture.forget(ids) == model.forget(ids) == 3
    assert mixture._model.digest() == model.digest()


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (linear_model.PAClassifier(), "model is of type PAClassifier; it must be one of LASVM, "),
        ("lasvm", "model is of type str; it must be one of LASVM, "),
        (LASVM, r"model=LASVM is a class; give one of its learners, as LASVM\(\) makes it"),
    ],
)
def test_only_learners_of_this_package(model, words):
    with pytest.raises(TypeError, match=words):
        Mixture(model)


@pytest.mark.parametrize("make", [Mixture, lambda: Mixture(OneVsRest(LASVM()))])
def test_a_batch_that_no_model_takes_is_refused_before_any_of_it_is_learned(make):
    mixture = make()
    mixture.learn_many(pd.DataFrame({"a": [0.0, 1.0], "b": [1.0, 1.0]}), [True, False])
    before, X = mixture.digest(), np.eye(3)
    for words, refused in {
        "the model knows none of them": lambda: mixture.predict_many(X),
        "but 'a', 'b'": lambda: mixture.learn_many(X, [True, False, True]),
        "one label for each": lambda: mixture.learn_many([{"a": 1.0}] * 3, [True, False]),
        "a batch is a 2-D array": lambda: mixture.predict_many(X[0]),
        "ids has shape": lambda: mixture.learn_many([{"a": 1.0}] * 3, [True] * 3, ids=[1]),
        "t has 1 entries for 3 rows": lambda: mixture.learn_many([{"a": 1.0}] * 3, [True] * 3, t=[1]),
        "margins has 1 entries for 3 rows": lambda: mixture.learn_many([{"a": 1.0}] * 3, [True] * 3, margins=[None]),
    }.items():
        with pytest.raises(ValueError, match=words):
            refused()
        assert mixture.digest() == before


def test_a_spoiled_snapshot_is_refused():
    mixture = Mixture(AutoLASVM())
    mixture.learn_many(*zip(*few_of_many(100), strict=True))
    meta, arrays = snapshot.unpack(mixture.to_bytes(), "Mixture")
    spoiled = [
        (meta | {"kind": "Mixture"}, arrays),
        (meta | {"model": {}}, arrays),
        (meta | {"columns": ["a"]}, arrays),
        (meta | {"n": -1}, arrays),
    ]
    own = {name: array for name, array in arrays.items() if array.size and not name.startswith("model.")}
    spoiled += [(meta, arrays | {name: array[:-1]}) for name, array in own.items()]
    spoiled += [
        (meta, arrays | {name: np.full(array.shape, np.nan)}) for name, array in arrays.items() if name[:4] == "rule"
    ]
    for content in spoiled:
        with pytest.raises(SnapshotError):
            Mixture.from_bytes(snapshot.pack("Mixture", *content))


def test_its_own_memory_is_bounded():
    mixture, sizes, stream = Mixture(LASVM(window=50)), [], few_of_many(5000)
    for part in (stream[:2100], stream[2100:]):  # all parts of the state are full after 2048
        mixture.learn_many(*zip(*part, strict=True))
        sizes.append(len(mixture.to_bytes()))
    assert sizes[1] < 1.05 * sizes[0] < 3e6


@pytest.mark.parametrize("model", [None, LASVM(C=1.0)])
def test_late_labels_are_learned_with_what_was_said_of_their_records(model):
    """The rule learns from the probabilities of the time of the prediction, also in a batch and after a restart."""
    stream = lagging(400)
    make = lambda: Mixture(None if model is None else model.clone())  # noqa: E731
    late, plain, batch, given = make(), make(), make(), []
    for i, (x, y) in enumerate(stream):
        given.append((x, y, late.margins_one(x)))
        plain.learn_one(x, y)
        if i >= 50:
            late.learn_one(given[i - 50][0], given[i - 50][1], margin=given[i - 50][2])
    xs, ys, margins = zip(*given[:350], strict=True)
    batch.learn_many(xs[:200], ys[:200], margins=np.array(margins[:200]) if model else margins[:200])
    batch = Mixture.from_bytes(batch.to_bytes())
    batch.learn_many(xs[200:], ys[200:], margins=margins[200:])
    assert batch.digest() == late.digest()
    assert late.shares_["last label"] < plain.shares_["last label"]


@pytest.mark.parametrize("margin", [(0.5,), (0.0,) * 9, (0.0, *(2.0,) * 9, 0.0), (0.0, *(0.5,) * 9, np.nan)])
def test_what_was_said_must_be_complete(margin):
    mixture = Mixture()
    mixture.learn_many([{"a": 1.0}, {"a": 2.0}], [True, False])
    before = mixture.digest()
    with pytest.raises(ValueError, match="margin"):
        mixture.learn_one({"a": 1.0}, True, margin=margin)
    with pytest.raises(TypeError, match=r"margin=0\.5 must be what margins_one"):
        mixture.learn_one({"a": 1.0}, True, margin=0.5)
    assert mixture.digest() == before


def test_log_odds_say_what_the_probabilities_say():
    mixture, stream = Mixture(LASVM()), lagging(120)
    for x, y in stream[:100]:
        mixture.learn_one(x, y)
    values = mixture.decision_function_many([x for x, _ in stream])
    p = mixture.predict_proba_many([x for x, _ in stream])[:, 1]
    np.testing.assert_allclose(mixture.probability(values), p)
    np.testing.assert_array_equal(values > mixture.decision_threshold, p > 0.5)
    assert mixture.explain_one(stream[0][0]).label == mixture._model.predict_one(stream[0][0])


def test_an_export_says_why_not():
    with pytest.raises(TypeError, match="its experts have no such form"):
        describe(Mixture())
