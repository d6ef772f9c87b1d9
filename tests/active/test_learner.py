"""The river classifier that asks for labels for a share of the stream."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from river import base, compose, datasets, evaluate, linear_model, metrics, preprocessing

from streamsvm import LASVM, WarmupScaler
from streamsvm.active.learner import WINDOW, ActiveLearner, _distance, _Scores
from tests.helpers.river_checks import hold

LEARNERS = {
    "LASVM": ActiveLearner(LASVM()),
    "pipeline": ActiveLearner(preprocessing.StandardScaler() | LASVM()),
    "no decision function": ActiveLearner(linear_model.LogisticRegression()),
}


class Line(base.Classifier):
    """The decision value is the feature z; notes what it learns and with which arguments."""

    def __init__(self):
        self.learned = []

    def decision_function_one(self, x):
        return x["z"]

    def predict_one(self, x, **kwargs):
        return x["z"] > 0, kwargs

    def predict_proba_one(self, x, **kwargs):
        return {True: x["z"]}, kwargs

    def learn_one(self, x, y, **kwargs):
        self.learned.append((x, y, kwargs))


def primed(share=0.1, explore=0.0, seed=0):
    """A learner that has labels of two classes."""
    learner = ActiveLearner(Line(), share, explore, seed)
    for y in (True, False):
        learner.learn_one({"z": 0.0}, y)
    return learner


def stream(n, seed=0):
    rng = np.random.default_rng(seed)
    return [{"z": z} for z in rng.normal(size=n)]


def clusters(n, positive=0.02, seed=0):
    """Two clusters in the plane, the positive one rare."""
    rng = np.random.default_rng(seed)
    labels = rng.random(n) < positive
    points = rng.normal(size=(n, 2)) + np.where(labels, 2.5, 0.0)[:, None]
    return [({"a": float(a), "b": float(b)}, bool(y)) for (a, b), y in zip(points, labels, strict=True)]


def run(learner, examples):
    """Learn what is asked for; the labels of that, and where it was in the stream."""
    asked = []
    for i, (x, y) in enumerate(examples):
        if learner.ask(x):
            learner.learn_one(x, y)
            asked.append((i, y))
    return asked


@pytest.mark.long
@pytest.mark.parametrize("name", LEARNERS)
def test_every_check_of_river_passes(name):
    hold(LEARNERS[name], 45)


def test_predictions_are_answers_and_arguments_reach_the_model():
    learner = primed()
    x = {"z": 0.25}
    assert learner.predict_one(x, t=3) == (True, {"t": 3})
    assert learner.predict_proba_one(x, t=3) == ({True: 0.25}, {"t": 3})
    learner.learn_one(x, True, w=2.0, id=7)
    assert learner.model.learned[-1] == (x, True, {"w": 2.0, "id": 7})
    assert learner.n_seen == 0  # neither is a question


@pytest.mark.parametrize("scaled", [False, True])
def test_a_weight_counts_in_the_wrapped_model(scaled):
    x, z = {"a": 1.0}, {"a": -1.0}
    coefficients = []
    for w in (1.0, 0.25):
        model = LASVM(C=0.5)
        learner = ActiveLearner(preprocessing.MinMaxScaler() | model if scaled else model)
        for _ in range(3):
            learner.learn_one(x, True, w=w)
            learner.learn_one(z, False, w=w)
        coefficients.append(np.abs(model.dual_coef).max())
    assert coefficients == [0.5, 0.125]


@given(
    share=st.floats(0.001, 1.0),
    explore=st.floats(0.0, 1.0),
    seed=st.integers(0, 9),
    values=st.lists(st.floats(-2, 2) | st.sampled_from([0.0, 1.0]), max_size=400),
    first_label=st.integers(0, 50),
)
def test_the_share_is_never_exceeded(share, explore, seed, values, first_label):
    learner = ActiveLearner(Line(), share, explore, seed)
    n_asked = 0
    for i, z in enumerate(values):
        n_asked += learner.ask({"z": z})
        assert n_asked / (i + 1) <= share
        if i >= first_label:
            learner.learn_one({"z": z}, i % 2 == 0)
    assert (learner.n_seen, learner.n_asked) == (len(values), n_asked)


def test_a_share_of_1_asks_about_everything():
    for explore in (0.0, 0.3, 1.0):
        learner = primed(1.0, explore)
        assert all(learner.ask(x) for x in stream(500))


@pytest.mark.parametrize("share", [0.02, 0.1, 0.5])
@pytest.mark.parametrize("explore", [0.0, 0.3, 1.0])
def test_the_share_is_used_up(share, explore):
    learner = primed(share, explore)
    for x in stream(5000):
        learner.ask(x)
    assert learner.n_asked > 0.94 * share * 5000


def test_the_share_is_used_up_as_the_model_grows_more_certain():
    """All distances rise all the time, so that fewer and fewer are among the nearest of the last ones."""
    learner = primed(0.1)
    for i, x in enumerate(stream(5000)):
        learner.ask({"z": x["z"] * (1 + i / 500)})
    assert learner.n_asked > 0.95 * 0.1 * 5000


def test_equal_distances_are_drawn_from():
    """While the model says 0 to everything, the questions are spread over the stream."""
    learner = primed(0.1)
    asked = [i for i in range(5000) if learner.ask({"z": 0.0})]
    assert 450 < len(asked) <= 500
    assert 4 < np.std(np.diff(asked)) < 15  # not every tenth


def test_questions_concentrate_on_the_boundary():
    """Two thirds of them are the nearest; the others are about examples unlike the labelled ones, which are at 0."""
    learner = primed(0.1)
    examples = stream(5000)
    near = np.array([abs(x["z"]) for x in examples if learner.ask(x)])
    tenth = np.quantile([abs(x["z"]) for x in examples], 0.1)
    assert 0.6 < np.mean(near <= 1.5 * tenth) < 0.8  # the examples farther out come to look near as well
    assert np.mean(near > 1.5 * tenth) > 0.2


def test_a_share_of_the_questions_is_drawn_by_distance():
    """In proportion to the squared distance from the labelled examples, which are at 0, without replacement."""
    learner = primed(0.1, explore=1.0)
    examples = stream(10000)
    asked = np.array([x["z"] for x in examples if learner.ask(x)])
    z = np.array([x["z"] for x in examples])
    twin = np.random.default_rng(1).choice(z, len(asked), replace=False, p=z**2 / np.sum(z**2))
    for edge in (0.5, 1.0, 1.5, 2.0):
        assert np.mean(np.abs(asked) < edge) == pytest.approx(np.mean(np.abs(twin) < edge), abs=0.05)


def test_distant_examples_while_a_class_is_missing():
    learner = ActiveLearner(Line(), 0.2, 0.0, seed=3)
    for _ in range(3):
        learner.learn_one({"z": 0.0}, False)
    asked = np.array([abs(x["z"]) for x in stream(5000) if learner.ask(x)])
    assert len(asked) > 0.95 * 1000
    assert np.mean(asked) > 1.3  # of all examples: 0.8
    learner.learn_one({"z": 0.0}, True)
    asked = np.array([abs(x["z"]) for x in stream(5000, seed=1) if learner.ask(x)])
    assert np.mean(asked < 0.3) > 0.6


def test_the_first_question_is_about_any_example():
    """Without a labelled example, all are as far."""
    asked = []
    for seed in range(200):
        learner = ActiveLearner(Line(), 0.05, seed=seed)
        asked.append(next(i for i, x in enumerate([{"z": float(i)} for i in range(10**4)]) if learner.ask(x)))
    assert len(set(asked)) > 10


def test_features_that_are_no_numbers_are_left_out_of_distances():
    learner = primed(1.0, explore=1.0)
    for x in ({"z": 1.0, "t": "text"}, {"z": 1.0, "n": None}, {"z": 1.0, "n": float("nan")}, {}):
        assert learner.ask(x)
        learner.learn_one(x, True)
    assert learner.ask({"z": 2.0, "t": "other"})


def test_the_comparison_forgets():
    """After a jump, the scores before it count for as many examples as the window holds, and no longer."""
    scores = _Scores(WINDOW)
    for x in stream(1000):
        scores.rank(abs(x["z"]), 0.5)
    later = [abs(x["z"]) + 50.0 for x in stream(2 * WINDOW, seed=1)]
    for z in later[:WINDOW]:
        scores.rank(z, 0.5)
    for z in later[WINDOW : WINDOW + 20]:
        window = sorted(later[later.index(z) - WINDOW : later.index(z)])
        assert scores.rank(z, 0.0) == np.searchsorted(window, z) / (WINDOW + 1)


def test_rare_positives_are_found():
    """2 % of the stream are positive; of the questions many more."""
    examples = clusters(5000)
    for seed in range(3):
        asked = run(ActiveLearner(LASVM(C=1.0, gamma=0.5), 0.05, seed=seed), examples)
        assert len(asked) <= 250
        assert np.mean([y for _, y in asked]) > 0.1


def test_a_tenth_of_the_labels_is_about_as_good_as_all():
    examples = [(x, y) for x, y in datasets.Bananas()]
    recalls = []
    for share in (0.1, 1.0):
        learner = ActiveLearner(WarmupScaler() | LASVM(C=10), share, seed=1)
        run(learner, examples[:4000])
        right = [learner.predict_one(x) == y for x, y in examples[4000:]]
        recalls.append(np.mean(right))
    assert recalls[0] > recalls[1] - 0.03


def test_a_pipeline_asks_as_its_learner_does_about_the_transformed_examples():
    examples, factor = clusters(1500, 0.2), 4.0
    plain = ActiveLearner(LASVM(gamma=0.5), 0.1, seed=1)
    scaled = ActiveLearner(compose.FuncTransformer(quadruple) | LASVM(gamma=0.5), 0.1, seed=1)
    small = [({name: value / factor for name, value in x.items()}, y) for x, y in examples]
    assert run(scaled, small) == run(plain, examples)


def quadruple(x):
    return {name: 4.0 * value for name, value in x.items()}


def test_the_scale_of_the_features_does_not_matter_to_a_classifier_without_one():
    """One tells apart by the sign, and its features are scaled by powers of 2, so that rounding is the same."""
    examples = clusters(2000, 0.2)
    asked = run(ActiveLearner(Sign(), 0.1, seed=1), examples)
    other = run(
        ActiveLearner(Sign(), 0.1, seed=1), [({"a": 1024.0 * x["a"], "b": x["b"] / 64.0}, y) for x, y in examples]
    )
    assert len(asked) > 150
    assert [i for i, _ in other] == [i for i, _ in asked]


class Sign(Line):
    """Needs no scale either."""

    def decision_function_one(self, x):
        return np.sign(x["a"] - 1.0)


def test_without_a_decision_function_the_probability_says_the_distance():
    model = linear_model.LogisticRegression()
    for x, y in clusters(500, 0.5):
        model.learn_one(x, y)
    x = {"a": 1.0, "b": 2.0}
    assert _distance(x, model) == abs(2.0 * model.predict_proba_one(x)[True] - 1.0)


def test_the_threshold_of_predictions_is_the_boundary():
    model = Line()
    model.decision_threshold = 0.25
    assert _distance({"z": 0.375}, model) == 0.125


def test_progressive_evaluation():
    model = ActiveLearner(WarmupScaler() | LASVM(C=10), seed=1)
    accuracy = evaluate.progressive_val_score(datasets.Bananas().take(1000), model, metrics.Accuracy())
    plain = WarmupScaler() | LASVM(C=10)
    assert (
        accuracy.get() == evaluate.progressive_val_score(datasets.Bananas().take(1000), plain, metrics.Accuracy()).get()
    )
    assert str(model) == "ActiveLearner(WarmupScaler | LASVM)"


def test_a_seed_makes_it_deterministic():
    examples = clusters(2000, 0.2)

    def asked(seed):
        return run(ActiveLearner(LASVM(), 0.1, seed=seed), examples)

    assert asked(1) == asked(1)
    assert asked(1) != asked(2)
    assert asked(None) != asked(None)


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda learner: pickle.loads(pickle.dumps(learner))])  # noqa: S301
def test_copies_go_on_alike(duplicate):
    examples = clusters(1500, 0.2)
    learner = ActiveLearner(WarmupScaler() | LASVM(), 0.1, seed=1)
    run(learner, examples[:700])
    other = duplicate(learner)
    assert run(other, examples[700:]) == run(learner, examples[700:])
    assert other.predict_proba_one(examples[0][0]) == learner.predict_proba_one(examples[0][0])


def test_a_clone_is_new():
    examples = clusters(1000, 0.2)
    learner = ActiveLearner(LASVM(), 0.1, explore=0.2, seed=1)
    asked = run(learner, examples)
    clone = learner.clone()
    assert (clone.n_seen, clone.model.n_members, clone.explore) == (0, 0, 0.2)
    assert run(clone, examples) == asked


@pytest.mark.parametrize("share", [0.0, -0.1, 1.5, float("nan")])
def test_a_share_out_of_range_is_refused(share):
    with pytest.raises(ValueError, match=r"share=.* must be a share of the stream: above 0, at most 1"):
        ActiveLearner(LASVM(), share)


@pytest.mark.parametrize("explore", [-0.1, 1.5, float("nan")])
def test_a_share_of_random_questions_out_of_range_is_refused(explore):
    with pytest.raises(ValueError, match=r"explore=.* must be a share of the questions: from 0 to 1"):
        ActiveLearner(LASVM(), explore=explore)
