"""Kernel values: the vectorised float32 maps against the formulas in float64."""

import decimal
import math
from pathlib import Path

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from streamsvm.core import exponentials
from streamsvm.core.kernels import (
    FORMULAS,
    NAMES,
    RBF,
    Linear,
    Polynomial,
    Sigmoid,
    kernel_values,
    make_kernel,
    map_row,
    self_product,
)
from streamsvm.estimators.lasvm import LASVM
from streamsvm.export import description
from streamsvm.export.description import EXPORTED_KERNELS
from streamsvm.export.libsvm import NAMES as EXPORTED
from streamsvm.sklearn_api import LASVMClassifier

KERNELS = (
    RBF(30.0),
    Polynomial(1, 0.5),
    *(make_kernel(name, gamma=0.5, degree=3, coef0=-0.2) for name in NAMES),
)


@njit
def mapped(kernel, row, sq, sq_x):
    map_row(kernel, row, sq, sq_x)
    return row


@njit
def own_product(kernel, sq_x):
    return self_product(kernel, sq_x)


def row_of_values(kernel, x, X):
    """k(x, x_s) for all rows of X, as the engine computes it from inner products."""
    products = np.float32(X @ x)
    return mapped(kernel, products, np.float32(np.sum(X * X, axis=1)), np.float32(x @ x))


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("n", [0, 1, 7, 64, 1001])
def test_rows_have_the_values_of_the_formula(kernel, n):
    rng = np.random.default_rng(n)
    X, x = rng.normal(size=(n, 5)), rng.normal(size=5)
    expected = naive.gram(kernel, [x], X)[0]
    np.testing.assert_allclose(row_of_values(kernel, x, X), expected, rtol=3e-5, atol=3e-6)


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_self_product_is_the_value_for_the_example_itself(kernel):
    x = np.random.default_rng(0).normal(size=5)
    assert own_product(kernel, np.float32(x @ x)) == pytest.approx(naive.kernel_value(kernel, x, x), rel=1e-5)


@pytest.mark.parametrize("kernel", KERNELS)
def test_every_path_has_the_same_formula(kernel):
    """In double precision: compiled code, numpy, and the C of a GPU, which Python can read too."""
    rng = np.random.default_rng(1)
    X, x = rng.normal(size=(20, 5)), rng.normal(size=5)
    expected = naive.gram(kernel, [x], X)[0]
    products, sq, sq_x = X @ x, np.sum(X * X, axis=1), float(x @ x)
    np.testing.assert_allclose(mapped(kernel, products.copy(), sq, sq_x), expected, rtol=1e-12)
    np.testing.assert_allclose(kernel_values(kernel, products.copy(), sq, np.array(sq_x)), expected, rtol=1e-12)
    names = {name: getattr(math, name) for name in ("exp", "pow", "tanh")} | kernel._asdict()
    formula = FORMULAS[kernel.kind].format(real="float")
    on_gpu = [
        eval(formula, names | {"p": p, "sq": z, "sq_q": sq_x})  # noqa: S307 - our own formula
        for p, z in zip(products, sq, strict=True)
    ]
    np.testing.assert_allclose(on_gpu, expected, rtol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_what_users_read_names_every_kernel(name):
    texts = {each.__name__: each.__doc__ for each in (LASVM, LASVMClassifier, make_kernel)}
    for page in ("docs/learning.md", "examples/app.toml"):
        texts[page] = (Path(__file__).parents[2] / page).read_text(encoding="utf-8")
    silent = [where for where, text in texts.items() if f'"{name}"' not in text]
    assert not silent, f"name the kernel {name!r} there: {', '.join(silent)}"


def test_an_export_refuses_a_kernel_that_it_cannot_compute(monkeypatch):
    assert set(EXPORTED) == set(EXPORTED_KERNELS)
    model = LASVM()
    model.learn_many(np.eye(2), [True, False])
    monkeypatch.setattr(description, "EXPORTED_KERNELS", ("linear",))
    with pytest.raises(ValueError, match="kernel='rbf' cannot be exported; use one of "):
        description.describe(model)


@given(st.floats(0, 87))
def test_the_exponential_is_accurate_to_float32(exponent):
    """From e^0 down to e^-87, the smallest normal float32."""
    exponent = np.float32(exponent)  # as a squared distance, for gamma = 1
    value = mapped(RBF(1.0), np.zeros(1, np.float32), np.zeros(1, np.float32), exponent)[0]
    assert value == pytest.approx(math.exp(-float(exponent)), rel=4e-7)


def test_the_exponential_does_not_depend_on_the_precision_that_a_program_has_set():
    with decimal.localcontext(prec=5):
        assert exponentials._split(16) == (exponentials.LN2_HIGH, exponentials.LN2_LOW)
    assert math.log(2.0) == exponentials.LN2_HIGH + exponentials.LN2_LOW


def test_rbf_stays_between_0_and_1_at_the_extremes():
    far, near = np.float32(1e30), np.float32(0.0)
    assert mapped(RBF(1.0), np.zeros(1, np.float32), np.zeros(1, np.float32), near)[0] == 1.0
    assert 0.0 <= mapped(RBF(1e8), np.zeros(1, np.float32), np.zeros(1, np.float32), far)[0] < 1e-37
    # rounding may make ||x||² + ||z||² - 2 <x, z> negative; the kernel is not above 1 for that
    rounded_up = np.array([1.000001], np.float32)
    assert mapped(RBF(1.0), rounded_up, np.ones(1, np.float32), np.float32(1.0))[0] == 1.0


@given(st.floats(-1e6, 1e6))
def test_sigmoid_saturates_instead_of_overflowing(z):
    value = mapped(Sigmoid(1.0), np.array([z], np.float32), np.zeros(1, np.float32), np.float32(0.0))[0]
    assert value == pytest.approx(math.tanh(z), abs=3e-7)


@pytest.mark.parametrize("degree", range(1, 7))
def test_polynomial_has_its_degree(degree):
    value = mapped(Polynomial(degree, 2.0, 1.0), np.ones(1, np.float32), np.zeros(1, np.float32), np.float32(0.0))[0]
    assert value == 3.0**degree


def test_the_constructors_are_make_kernel():
    assert make_kernel("rbf", gamma=0.5) == RBF(0.5)
    assert make_kernel("linear") == Linear()
    assert make_kernel("poly", gamma=0.5, degree=2, coef0=1.0) == Polynomial(2, 0.5, 1.0)
    assert make_kernel("sigmoid", gamma=0.5, coef0=1.0) == Sigmoid(0.5, 1.0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "gaussian"}, "kernel='gaussian' is unknown; use one of 'rbf', 'linear', 'poly', 'sigmoid'"),
        ({"name": "rbf", "gamma": 0.0}, "gamma=0.0 must be a positive finite number"),
        ({"name": "rbf", "gamma": -1}, "gamma=-1 must"),
        ({"name": "rbf", "gamma": math.nan}, "gamma=nan must"),
        ({"name": "rbf", "gamma": math.inf}, "gamma=inf must"),
        ({"name": "poly", "degree": 0}, "degree=0 must be an integer from 1 to 1000"),
        ({"name": "poly", "degree": 10**9}, "degree=1000000000 must be an integer from 1 to 1000"),
        ({"name": "poly", "degree": 2.5}, "degree=2.5 must"),
        ({"name": "sigmoid", "coef0": math.nan}, "coef0=nan must be a finite number"),
    ],
)
def test_a_bad_parameter_is_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        make_kernel(**arguments)


@pytest.mark.parametrize("name", ["gamma", "degree", "coef0"])
@pytest.mark.parametrize("value", ["1", None])
def test_a_parameter_that_is_no_number_is_named(name, value):
    with pytest.raises((ValueError, TypeError), match=f"{name}={value!r}"):
        make_kernel("poly", **{name: value})
