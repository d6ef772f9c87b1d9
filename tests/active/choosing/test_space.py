"""What is kept from question to question is what a computation from scratch gives, to the bit."""

import json

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from river import preprocessing

from streamsvm import LASVM, LASVMG
from streamsvm.active import ArrayPool, StreamPool, margins
from streamsvm.active.choosing import space as room
from streamsvm.active.choosing.space import Space

RNG = np.random.default_rng
N, D = 80, 5


def problem(seed=0, n=N):
    X = RNG(seed).normal(size=(n, D)).round(2) * [1.0, 2.0, 0.5, 1.0, 3.0]
    return X, X[:, 0] + X[:, 1] ** 2 > 1.0


def taught(model, X, y, keys, pool, space):
    """Teach some rows, which leave the pool."""
    for key in keys:
        row = pool.rows([key])
        pool.discard(key)
        space.note(key, row)
        model.learn_many(row, [bool(y[key])], 1.0, np.array([key]))
    model.finish()


FORMS = {
    "array": lambda X: X,
    "float32": lambda X: X.astype(np.float32),
    "sparse": sp.csr_matrix,
    "frame": lambda X: pd.DataFrame(X, columns=list("abcde")),
    "dicts": lambda X: [dict(zip("abcde", row, strict=True)) for row in X.tolist()],
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("options", [{"gamma": 0.3}, {}, {"kernel": "poly", "degree": 2, "gamma": 0.2}])
@pytest.mark.parametrize("learner", [LASVM, LASVMG])
def test_decision_values_are_the_models(form, options, learner):
    X, y = problem()
    pool, space, model = ArrayPool(FORMS[form](X)), Space(), learner(**options)
    for keys in (range(10), range(10, 12), range(12, 40)):
        taught(model, X, y, keys, pool, space)
        places = space.look(pool, model)
        expected = margins(model, pool.rows(pool.keys()))
        np.testing.assert_allclose(space.decision_values(model, places), expected, atol=2e-4)


def nearest(X, labelled, scale=1.0):
    return (((X[:, None] - X[labelled]) / scale) ** 2).sum(2).min(1)


@pytest.mark.parametrize("form", FORMS)
def test_distances_are_euclidean(form):
    X, y = problem()
    pool, space, model = ArrayPool(FORMS[form](X)), Space(), LASVM(gamma=0.3)
    assert np.isinf(space.distances(space.look(pool, model))).all()
    for end in (1, 2, 30):
        taught(model, X, y, range(space.n_labelled, end), pool, space)
        found = space.distances(space.look(pool, model))
        np.testing.assert_allclose(found, nearest(X, range(end))[pool.keys()], atol=1e-5)


def test_distances_that_single_precision_holds_are_exact():
    """The draw by distance is that of double precision then; a labelled example's copy has no chance."""
    X = RNG(0).integers(-20, 20, (N, 40)) / 4.0
    X[7] = X[70]
    pool, space, model = ArrayPool(X), Space(), LASVM(gamma=0.3)
    taught(model, X, X[:, 0] > 0.0, range(10), pool, space)
    found = space.distances(space.look(pool, model))
    np.testing.assert_array_equal(found, nearest(X, range(10))[pool.keys()])
    assert found[pool.keys().index(70)] == 0.0


def test_distances_are_in_deviations_if_the_model_scales():
    X, y = problem()
    pool, space, model = ArrayPool(X), Space(), LASVM()
    space.look(pool, model)
    taught(model, X, y, range(5), pool, space)
    found = space.distances(space.look(pool, model))
    np.testing.assert_allclose(found, nearest(X, range(5), X.std(axis=0))[pool.keys()], atol=1e-5)


@pytest.mark.parametrize("form", FORMS)
def test_novelty_is_the_distance_from_the_span(form):
    X, y = problem()
    pool, space, model = ArrayPool(FORMS[form](X)), Space(), LASVM(gamma=0.2)
    for end in (3, 4, 20):
        taught(model, X, y, range(space.n_labelled, end), pool, space)
        places = space.look(pool, model)
        K = np.exp(-0.2 * ((X[:, None] - X[:end]) ** 2).sum(2))[pool.keys()]
        inverse = np.linalg.inv(np.exp(-0.2 * ((X[:end, None] - X[:end]) ** 2).sum(2)) + 0.01 * np.eye(end))
        expected = np.sqrt(1.0 - np.einsum("ij,jk,ik->i", K, inverse, K))
        np.testing.assert_allclose(space.novelty(model, places), expected, atol=1e-5)


def test_a_pipeline_has_distances_and_novelty_but_no_kernel_rows():
    X, y = problem()
    pool, space = ArrayPool(FORMS["dicts"](X)), Space()
    model = preprocessing.StandardScaler() | LASVM(gamma=0.2)
    for key in range(10):
        model.learn_one(pool.rows([key])[0], bool(y[key]))
        space.note(key, pool.rows([key]))
    places = space.look(pool, model)
    assert space.decision_values(model, places) is None
    assert np.isfinite(space.distances(places)).all()
    assert ((space.novelty(model, places) >= 0.0) & (space.novelty(model, places) <= 1.0)).all()


def test_texts_are_features_of_their_own():
    pool, space = ArrayPool([{"city": "Rome"}, {"city": "Bonn"}, {"city": "Rome", "age": 2.0}]), Space()
    space.note(9, [{"city": "Rome"}])
    assert space.distances(space.look(pool, LASVM(gamma=1.0))).tolist() == [0.0, 2.0, 4.0]


def letters(n=N, width=400):
    """Texts as `Records` gives them: words apart, of which an example has few, beside numbers of any size."""
    rng = RNG(3)
    rows = [{f"~body#{j}": 0.5 for j in rng.choice(width, 4, replace=False)} for _ in range(n)]
    amounts, lengths = rng.lognormal(8.0, 1.0, n).tolist(), rng.normal(5.0, 0.3, n).tolist()
    rows = [row | {"amount": a, "length": b} for row, a, b in zip(rows, amounts, lengths, strict=True)]
    return rows, np.array(amounts) > 3000.0


def test_numbers_beside_words_are_scaled_as_the_model_scales():
    """Scored without their scale, a pool of texts looked alike: 100 questions found 8 of 56 positives."""
    X, y = letters()
    pool, space, model = ArrayPool(X), Space(), LASVM(C=10.0)
    for keys in (range(10), range(10, 40)):
        taught(model, X, y, keys, pool, space)
        places = space.look(pool, model)
        assert sp.issparse(space._pool.matrix)
        assert model.scale_of("amount")[1] < 0.01
        f = margins(model, pool.rows(pool.keys()))
        np.testing.assert_allclose(space.decision_values(model, places), f, atol=2e-4)
        assert np.ptp(f) > 0.5
    assert len(np.unique(space.novelty(model, places).round(3))) > len(places) / 2  # not all of them are as new
    fresh = Space()
    fresh.restore(json.loads(json.dumps(space.state())))
    again = fresh.look(pool, model)
    assert np.array_equal(fresh.distances(again), space.distances(places))
    assert np.array_equal(fresh.decision_values(model, again), space.decision_values(model, places))


@pytest.mark.parametrize("width", [20, 400])  # the pool is an array, and compressed rows
def test_distances_leave_what_stands_apart(width):
    X, y = letters(width=width)
    pool, space, model = ArrayPool(X), Space(), LASVM()
    space.look(pool, model)
    taught(model, X, y, range(5), pool, space)
    frame = pd.DataFrame(X).fillna(0.0)
    numbers = ["amount", "length"]
    frame[numbers] /= frame[numbers].std(ddof=0)
    found = space.distances(space.look(pool, model))
    np.testing.assert_allclose(found, nearest(frame.to_numpy(), range(5))[pool.keys()], atol=1e-4)


@pytest.mark.filterwarnings("ignore:an example lacks:streamsvm.StreamWarning")  # it was passed by with more
@pytest.mark.parametrize("options", [{"gamma": 0.3}, {}])
def test_a_stream_passes_by(options):
    """Examples come and go, also with new features; what is kept is what a new space computes, to the bit."""
    X, y = problem(n=400)
    pool, space, model, rng = StreamPool(30), Space(), LASVM(**options), RNG(1)
    for key, row in enumerate(X.tolist()):
        x = dict(zip("abcde", row, strict=True))
        pool.add(key, x | {f"f{key // 100}": 0.1}, key, rng)
        if key and key % 7 == 0:
            taught(model, X, y, pool.draw(1, rng), pool, space)
            places = space.look(pool, model)
            near, f = space.distances(places), space.decision_values(model, places)
        if key and key % 70 == 0:
            fresh = Space()
            fresh.restore(json.loads(json.dumps(space.state())))
            again = fresh.look(pool, model)
            assert np.array_equal(fresh.distances(again), near)
            assert np.array_equal(fresh.decision_values(model, again), f)
            assert np.array_equal(fresh.novelty(model, again), space.novelty(model, places))
    assert len(space._slots) < 120


def test_a_label_that_is_taken_back_counts_no_more():
    X, y = problem()
    pool, space, model = ArrayPool(X), Space(), LASVM(gamma=0.3)
    taught(model, X, y, range(6), pool, space)
    space.look(pool, model)
    space.distances(space.look(pool, model))
    space.drop(2)
    space.drop(77)
    left = [0, 1, 3, 4, 5]
    np.testing.assert_allclose(space.distances(space.look(pool, model)), nearest(X, left)[pool.keys()], atol=1e-5)


def test_only_the_newest_labels_are_remembered(monkeypatch):
    monkeypatch.setattr(room, "LABELLED", 10)
    X, y = problem()
    pool, space, model = ArrayPool(X), Space(), LASVM(gamma=0.3)
    taught(model, X, y, range(25), pool, space)
    assert 5 <= space.n_labelled <= 10
    found = space.distances(space.look(pool, model))
    np.testing.assert_allclose(found, nearest(X, range(25 - space.n_labelled, 25))[pool.keys()], atol=1e-5)


def test_a_large_model_has_no_kernel_rows(monkeypatch):
    monkeypatch.setattr(room, "LARGEST_ROWS", 100)
    X, y = problem()
    pool, space, model = ArrayPool(X), Space(), LASVM(gamma=0.3)
    taught(model, X, y, range(20), pool, space)
    assert space.decision_values(model, space.look(pool, model)) is None
    assert LASVM(budget=5).budget == 5
    assert space.decision_values(LASVM(budget=5), space.look(pool, model)) is None


def test_a_label_costs_one_row_of_products(monkeypatch):
    """The cost of a question does not grow with the number of labels times the pool."""
    X, y = problem(n=300)
    pool, space, model = ArrayPool(X), Space(), LASVM(gamma=0.3)
    taught(model, X, y, range(100), pool, space)
    places = space.look(pool, model)
    space.distances(places)
    space.decision_values(model, places)
    counted = []
    products = room.Table.products

    def counting(self, others):
        counted.append(len(self) * len(others))
        return products(self, others)

    monkeypatch.setattr(room.Table, "products", counting)
    taught(model, X, y, [100], pool, space)
    places = space.look(pool, model)
    space.distances(places)
    space.decision_values(model, places)
    assert sum(counted) <= 300 * 3
