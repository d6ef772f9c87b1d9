"""State on a topic of a real broker: a trainer is killed, its disk is gone, and another one goes on.

STREAMSVM_TEST_KILLS says how often; 20 take some minutes.
"""

import os
import random
import signal
import time

from .app import digest, settings_of, some_stream
from .test_trainer import by_src

KILLS = int(os.environ.get("STREAMSVM_TEST_KILLS", "2"))


def test_trainers_that_lose_their_disks_end_with_the_same_model(topics, start_app):
    log = settings_of(topics, model="")
    events, labels = some_stream(3000)
    topics.produce(log["topic"], events)
    topics.produce(log["labels"], labels)
    whole = start_app("whole", log={**log, "predictions": topics.create("whole")}, daemon={"checkpoint_records": 200})
    expected = digest(whole.run("daemon.follow=false"))
    state = topics.create("state", retention_ms=-1)
    app = start_app(
        "lost",
        log={**log, "state": state},
        state={"store": "topic"},
        daemon={"checkpoint_records": 200},
        group={"id": f"{log['topic']}-lost", "instance": "a"},
    )
    rng = random.Random(3)
    for machine in range(KILLS):
        process = app.start(f"daemon.state_dir=machine-{machine}")
        process.wait_until(lambda: process.metric("checkpoints_total") >= 2)  # noqa: B023 - called at once
        time.sleep(0.2 * rng.random())
        process.signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
    said = app.run("daemon.follow=false", "daemon.state_dir=machine-last")
    assert digest(said) == expected
    assert len(by_src(topics.read_all(log["predictions"]))) == len(events)
    assert topics.read_all(state)[0].offset > 0, "old checkpoints are removed"
