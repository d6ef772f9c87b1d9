"""A storm on a real broker, which is killed too and keeps what it has acknowledged: each output is there once.

STREAMSVM_TEST_KILLS=N lets it last longer.
"""

import os

import pytest
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
