"""River's own checks of a model, all of them."""

import warnings

from river import checks


def hold(model, n_checks: int) -> None:
    """Assert that each of the n checks that river has for the model holds, with none left out.

    The checks hold generators of examples, so they are collected anew for each run.  Some leave out features at random,
    without a seed: once in about a thousand runs, one of them was there often enough for us to warn that it is lacking.
    """
    assert model._unit_test_skips() == set()
    collected = list(checks.yield_checks(model))
    assert len(collected) == n_checks
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "an example lacks the feature")
        for check in collected:
            check(model.clone())
