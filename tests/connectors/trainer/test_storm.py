"""Trainers and a producer are killed at random moments while both are at work: nothing is lost or double.

STREAMSVM_TEST_KILLS=N lets the storms last longer; `python tests/helpers/storm.py --help` has more of them, and
`request_storm.py` and `challenger_storm.py` beside it.
"""

import os

import pytest
from request_storm import RequestStorm
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


@pytest.mark.parametrize("erases", [False, True], ids=["promotions", "erasures"])
def test_a_storm_of_requests(tmp_path, nursery, erases):
    storm = RequestStorm(tmp_path, nursery, seed=1, erases=erases)
    storm.run(N_KILLS // 2)
    storm.check()
