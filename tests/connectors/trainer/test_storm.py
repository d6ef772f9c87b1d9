"""Trainers and a producer are killed at random moments while both are at work: nothing is lost or double.

STREAMSVM_TEST_STORM=SECONDS lets the storms last longer; `python tests/helpers/storm.py --help` has more of them.
"""

import os

import pytest
from storm import Storm, nursery

SECONDS = float(os.environ.get("STREAMSVM_TEST_STORM", "2"))

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def context():
    with nursery() as context:
        yield context


@pytest.mark.parametrize(
    "options",
    [
        {"per": "partition"},
        {"per": "key", "damage": True},
        {"per": "key", "log": {"labels": "labels", "state": "state"}, "state": {"store": "topic"}},
    ],
    ids=["partition", "key, damaged", "key, state on a topic"],
)
def test_a_storm(tmp_path, context, options):
    storm = Storm(tmp_path, seed=7, n_events=int(200 * SECONDS), **options)
    storm.run(context, SECONDS)
    storm.check()
