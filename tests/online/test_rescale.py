"""Scaling the members of a model anew."""

import numpy as np
import pytest
from states import state_of

from streamsvm import LASVM
from streamsvm.core import storage
from streamsvm.core.expansion import SLOTS
from streamsvm.core.scaling.state import PLACES
from streamsvm.online import rescale


@pytest.mark.parametrize("n", [3, 7, 40])
def test_members_of_scaled_features_only_are_the_rows_that_any_members_are(n):
    """They take a shorter way, which needs no sparse matrix."""
    rng = np.random.default_rng(n)
    model = LASVM(C=1.0, scaling="standard")
    for t, x in enumerate(rng.normal(size=(n, 5)) * (rng.random((n, 5)) < 0.8)):
        model.learn_one(dict(enumerate(x.tolist())), bool(t % 2))
    s, c = storage.copy(state_of(model).expansion), state_of(model).scale.state
    s = storage.keep(s, storage.live_slots(s))
    assert (c.place[:5] >= 0).all(), "every feature has a place"
    raw, rows = rescale._unscaled(s, c, int(c.counts[PLACES]))
    members = storage.rows_of(s, np.arange(s.counts[SLOTS]), len(s.member_indices))
    expected = rescale._rows(raw, c.feature[: c.counts[PLACES]], members)
    for found, wanted in zip(rows[:4], expected[:4], strict=True):
        np.testing.assert_array_equal(found, wanted)
        assert found.dtype == wanted.dtype
