"""A few rows are taken one by one and more as a batch: a model says and learns the same either way."""

import math

import numpy as np
import pytest

from streamsvm import LASVM
from streamsvm.connectors.records.predictions import predictions_of
from streamsvm.connectors.trainer.learning import Task, _learn
from streamsvm.connectors.trainer.rows import ONE_BY_ONE, have_small_numbers, rows_at, unusable_rows
from streamsvm.connectors.trainer.state.lesson import Lesson, Told
from streamsvm.core.kernel_table import KERNELS
from streamsvm.core.kernels import is_bounded, make_kernel
from streamsvm.estimators.inputs.named_rows import NamedRows


def some_rows(n, seed, n_features=5):
    """Rows of which each lacks some features."""
    rng = np.random.default_rng(seed)
    return [
        {f"f{d}": value for d, value in enumerate(x) if rng.random() < 0.8} for x in rng.normal(size=(n, n_features))
    ]


def tasks_of(first, n):
    def lesson(i):
        return Lesson(i, b"event", i % 3 == 0, 1.0 + i % 2, Told(), None, is_first=True)

    return [Task(lesson(i), i, 1000 * i) for i in range(first, first + n)]


@pytest.mark.parametrize("given", [{"scaling": "standard"}, {"gamma": 0.5, "scaling": None}, {"kernel": "linear"}])
def test_few_rows_give_what_a_batch_gives(given):
    rows = NamedRows.of(some_rows(60, 0))
    one_by_one, batches = LASVM(**given), LASVM(**given)
    for first in range(0, 40, ONE_BY_ONE):
        _learn(one_by_one, tasks_of(first, ONE_BY_ONE), rows, None, None)
    _learn(batches, tasks_of(0, 42), rows, None, None)
    assert one_by_one.digest() == batches.digest()
    places = list(range(42, 60))
    assert isinstance(rows_at(rows, places), NamedRows)
    assert isinstance(rows_at(rows, places[:ONE_BY_ONE]), list)
    said = predictions_of(batches, rows_at(rows, places))
    assert said == [answer for i in places for answer in predictions_of(batches, rows_at(rows, [i]))]
    assert len({answer.margin for answer in said}) > 10


def test_few_rows_learn_in_a_window_of_time():
    rows = NamedRows.of(some_rows(12, 1))
    window = np.timedelta64(5, "s").astype(object)
    one_by_one, batch = LASVM(window=window), LASVM(window=window)
    for first in range(0, 12, ONE_BY_ONE):
        _learn(one_by_one, tasks_of(first, ONE_BY_ONE), rows, None, None)
    _learn(batch, tasks_of(0, 12), rows, None, None)
    assert one_by_one.digest() == batch.digest()
    assert one_by_one.n_members < 12


@pytest.mark.parametrize("n", [ONE_BY_ONE, ONE_BY_ONE + 3])
def test_unusable_rows_are_found_in_any_number(n):
    model = LASVM(kernel="poly", gamma=1.0, degree=3)
    model.learn_one({"a": 1.0}, True)
    xs = [{"a": 1.0}] * n
    xs[1] = {"a": 1e15}
    found = unusable_rows(rows_at(NamedRows.of(xs), range(n)), model)
    assert (list(found), found[1].reason) == ([1], "bad-feature")


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("size", [1.0, 1e17, 1e18, math.nan])
def test_a_model_that_takes_all_refuses_rows_only_for_their_numbers(kernel, size):
    model, x = LASVM(kernel=kernel, gamma=1.0), {"a": 1.0, "b": size}
    model.learn_one({"a": 1.0}, True)
    rows = NamedRows.of([{"b": 2.0}, x])
    assert have_small_numbers(rows) == (size < 1e18)
    assert model.takes_all(rows.names) == is_bounded(make_kernel(kernel))
    refused = bool(unusable_rows([x], model))
    assert refused if size == 1e18 else not (refused and have_small_numbers(rows) and model.takes_all(rows.names))
    model.max_features = 1
    assert not model.takes_all(rows.names)
