"""NamedRows: the batch of dicts, converted once, means what the dicts mean."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamsvm import LASVM, WarmupScaler
from streamsvm.estimators.inputs.named_rows import NamedRows, NamedValues

NUMBERS = st.floats(-1e6, 1e6) | st.integers(-100, 100)
ROWS = st.one_of(
    st.lists(st.dictionaries(st.sampled_from("abcdef"), NUMBERS, max_size=5), max_size=12),
    st.lists(st.fixed_dictionaries({"b": NUMBERS, "a": NUMBERS, "10": NUMBERS}), max_size=12),
)


@given(ROWS, st.randoms(use_true_random=False))
def test_the_rows_are_those_it_was_made_of(rows, random):
    batch = NamedRows.of(rows)
    assert list(batch) == rows
    places = [random.randrange(len(rows)) for _ in range(random.randrange(6))] if rows else []
    assert list(batch.take(places)) == [rows[i] for i in places]
    assert list(batch.beside(batch.take(places))) == rows + [rows[i] for i in places]
    assert [list(part) for part in batch.blocks(5)] == [rows[i : i + 5] for i in range(0, len(rows), 5)]


@given(ROWS, ROWS)
def test_models_and_scalers_take_it_for_the_dicts_to_the_bit(rows, more):
    scaler = WarmupScaler(warmup=len(rows) + 1)
    for x in rows:
        scaler.learn_one(x)
    assert list(scaler.transform_many(NamedRows.of(rows + more))) == scaler.transform_many(rows + more)
    one, other = LASVM(gamma=1e-9), LASVM(gamma=1e-9)
    for part in (rows, more):
        y = [bool(len(x) % 2) for x in part]
        one.learn_many(part, y)
        other.learn_many(NamedRows.of(part), y)
        other.validate_many(NamedRows.of(part))
    assert one.digest() == other.digest()
    values = [model.decision_function_many(batch) for model, batch in ((one, more), (other, NamedRows.of(more)))]
    np.testing.assert_array_equal(*values)


def test_a_block_of_many_rows():
    rng = np.random.default_rng(0)
    rows = [{name: rng.normal() for name in rng.permutation(list("abcde"))[: i % 6].tolist()} for i in range(600)]
    y = [bool(rng.random() < 0.5) for _ in rows]
    one, other = LASVM(gamma=1.0), LASVM(gamma=1.0)
    one.learn_many(rows, y)
    other.learn_many(NamedRows.of(rows), y)
    assert one.digest() == other.digest()


@pytest.mark.parametrize("rows", [[{"a": 1.0}, {"a": 1e30}], [{"b": 1.0}, {"a": 1e30, "b": 1.0}]])
def test_a_feature_that_is_too_large_is_named(rows):
    with pytest.raises(ValueError, match="feature 'a' in row 1 is 1e\\+30"):
        LASVM(gamma=1.0).validate_many(NamedRows.of(rows))


def test_values_with_names_are_a_mapping_and_make_the_batch_of_their_dicts():
    names, values = ("a", "b", "c"), np.random.default_rng(0).normal(size=(5, 3)).round(2)
    named = [NamedValues(names, row) for row in values]
    dicts = [dict(zip(names, row, strict=True)) for row in values.tolist()]
    assert named == dicts
    assert (named[0]["b"], len(named[0]), list(named[0].items())) == (dicts[0]["b"], 3, list(dicts[0].items()))
    assert repr(named[1]) == repr(dicts[1])
    rows, expected = NamedRows.of(named), NamedRows.of(dicts)
    assert (rows.names, rows.is_table, list(rows)) == (expected.names, True, list(expected))
    np.testing.assert_array_equal(rows.values, expected.values)
    other = NamedValues(("a", "d"), np.array([1.0, 2.0]))
    assert list(NamedRows.of([*named, other])) == [*dicts, {"a": 1.0, "d": 2.0}]
