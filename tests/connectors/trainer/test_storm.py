"""Trainers and a producer are killed at random moments while both are at work: nothing is lost or double.

STREAMSVM_TEST_KILLS=N lets the storms last longer; `python tests/helpers/storm.py --help` has more of them.
"""

import os

import pytest
from storm import Storm

N_KILLS = int(os.environ.get("STREAMSVM_TEST_KILLS", "6"))

pytestmark = pytest.mark.long


@pytest.mark.parametrize(
    "options",
    [
        {"per": "partition"},
        {"per": "key", "damage": True},
        {"per": "key", "log": {"labels": "labels", "state": "state"}, "state": {"store": "topic"}},
    ],
    ids=["partition", "key, damaged", "key, state on a topic"],
)
def test_a_storm(tmp_path, nursery, options):
    storm = Storm(tmp_path, seed=7, **options)
    storm.run(nursery, N_KILLS)
    storm.check()
