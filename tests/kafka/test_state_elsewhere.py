"""State on a topic of a real broker, or in objects: a trainer is killed, its disk is gone, and another one goes on.

STREAMSVM_TEST_KILLS says how often it is killed; 20 kills take some minutes.
"""

import json
import os
import random
import signal
import time

import pytest

from streamsvm.connectors.trainer.state.stored_state import read_state

from .app import SHORT_SESSION, WAIT_SECONDS, settings_of, some_stream
from .test_trainer import by_src, check_all_was_learned_once

KILLS = int(os.environ.get("STREAMSVM_TEST_KILLS", "2"))


@pytest.mark.parametrize(
    ("store", "exactly_once", "per"),
    [
        ("topic", False, "partition"),
        ("objects", True, "partition"),
        ("topic", True, "key"),
    ],
    ids=["topic", "objects-transactions", "keys-transactions"],
)
def test_trainers_that_lose_their_disks_end_with_the_same_models(topics, start_app, tmp_path, store, exactly_once, per):
    log = settings_of(topics, model="")
    # So that no trainer comes to the end before it is killed. Models of keys take turns in memory, which takes time.
    n, n_keys = (600 * KILLS, 7) if per == "key" else (1000 * KILLS, 1)
    events, labels = some_stream(n, n_keys=n_keys)
    topics.produce(log["topic"], events)
    topics.produce(log["labels"], labels)
    daemon = {"checkpoint_records": 200, "per": per, "max_models": 3}
    whole = start_app("whole", log={**log, "predictions": topics.create("whole")}, daemon=daemon)
    first = whole.start("daemon.follow=false")
    assert first.wait(WAIT_SECONDS * (1 + KILLS)) == 0, first.said
    (expected,) = read_state(whole.folder / "state")
    state = topics.create("state", retention_ms=-1) if store == "topic" else ""
    app = start_app(
        "lost",
        log={**log, "state": state},
        state={"store": store, "url": "" if state else f"file://{tmp_path}/bucket"},
        daemon={**daemon, "exactly_once": exactly_once},
        group={"id": f"{log['topic']}-lost", "instance": "a"},
    )
    rng = random.Random(3)
    for machine in range(KILLS):
        process = app.start(f"daemon.state_dir=machine-{machine}")
        process.let_work(lambda: process.metric("checkpoints_total") >= 2)  # noqa: B023 - called at once
        time.sleep(0.2 * rng.random())
        process.signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
    last = app.start("daemon.follow=false", "daemon.state_dir=machine-last")
    assert last.wait(WAIT_SECONDS * (1 + KILLS)) == 0, last.said
    (found,) = read_state(app.folder / "machine-last")
    assert found.models.digest() == expected.models.digest()
    if exactly_once:
        committed = topics.read_all(log["predictions"], isolation_level="read_committed")
        assert [json.loads(record.value)["id"] for record in committed] == [f"id-{i}" for i in range(len(events))]
    else:
        assert len(by_src(topics.read_all(log["predictions"]))) == len(events)
    if state:
        assert topics.read_all(state)[0].offset > 0, "old checkpoints are removed"
    else:
        assert sum(1 for _ in (tmp_path / "bucket" / "p0").iterdir()) < 200


def test_what_a_stopped_trainer_writes_afterwards_does_not_count(topics, start_app):
    """It wakes up in the midst of its work, on a disk of its own, and has not heard of its successor."""
    log = {**settings_of(topics, model=""), "state": topics.create("state", retention_ms=-1)}
    events, labels = some_stream(4000)
    app = start_app(
        "zombie",
        log=log,
        kafka=SHORT_SESSION,
        state={"store": "topic"},
        daemon={"checkpoint_seconds": 0.5},
    )
    topics.produce(log["topic"], events[:2000])
    topics.produce(log["labels"], labels[:2000])
    zombie = app.start("daemon.state_dir=machine-a")
    zombie.wait_until(lambda: zombie.metric("checkpoints_total") >= 1)
    zombie.signal(signal.SIGSTOP)
    heir = app.start("daemon.state_dir=machine-b")
    heir.wait_for(r"assigned partitions \[0\]")
    topics.produce(log["topic"], events[2000:])
    topics.produce(log["labels"], labels[2000:])
    zombie.signal(signal.SIGCONT)
    heir.wait_until(lambda: heir.metric("records_total") > 2000 and heir.metric("lag_records") == 0)
    assert zombie.stop() in (0, 75), zombie.said
    assert heir.stop() == 0, heir.said
    app.run("daemon.follow=false")  # in the folder that the next line looks at
    check_all_was_learned_once(topics, app, log, 1, labels)
