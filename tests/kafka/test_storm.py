"""Storms on a real broker: each output is there once, and challengers begin, serve and share at one offset each.

STREAMSVM_TEST_KILLS=N lets it last longer.
"""

import os

import pytest
from challenger_storm import ChallengerStorm
from storm import Storm

from .app import settings_of

N_KILLS = int(os.environ.get("STREAMSVM_TEST_KILLS", "4"))


@pytest.mark.parametrize(("client", "per"), [("librdkafka", "partition"), ("kafka-python", "key")], indirect=["client"])
def test_a_storm_of_kills(tmp_path, nursery, private_broker, topics_of, client, per):
    topics = topics_of(private_broker.bootstrap)
    log = settings_of(topics, 2)
    log["dlq"], log["model"] = topics.create("dlq", 2), topics.create("model", cleanup_policy="compact")
    storm = Storm(
        tmp_path / "app",
        seed=5,
        per=per,
        pause=0.05,
        calm=2.0,
        log=log,
        kafka={"client": client, "bootstrap_servers": private_broker.bootstrap},
        group={"id": tmp_path.name, "instance": "a"},
        daemon={"exactly_once": True},
    )

    def kill_broker(storm):
        if storm.found.kills % 3 == 1:
            storm.found.brokers += 1
            private_broker.kill()
            private_broker.start()

    storm.run(nursery, N_KILLS, kill_broker)
    print(storm.check())


@pytest.mark.long
def test_a_storm_of_challengers(tmp_path, nursery, broker, client):
    """Two trainers are killed while challengers catch up, answer shares and are promoted."""
    storm = ChallengerStorm(tmp_path, nursery, seed=6, address=broker.bootstrap, client=client)
    storm.run(N_KILLS, backlog=2000)
    storm.check()
    assert storm.asked["promote"] > 0, storm.asked
