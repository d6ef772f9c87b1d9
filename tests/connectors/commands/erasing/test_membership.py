"""An attacker who has the records of a person cannot tell whether they were erased, or never came."""

import runpy
from pathlib import Path

import numpy as np
import pytest

ATTACK = Path(__file__).parents[4] / "benchmarks" / "erase.py"


@pytest.mark.long
def test_the_attack_on_erased_people_is_at_chance():
    attacked = runpy.run_path(str(ATTACK))["attacked"]
    before, at_once, rebuilt = np.mean([attacked(8000, seed) for seed in range(10)], axis=0)
    assert before > 0.85
    assert abs(at_once - 0.5) < 0.02
    assert abs(rebuilt - 0.5) < 0.02
