"""Promotions on a real broker: what a trainer has noted is followed, whatever hides it for a while."""

from kafka import KafkaProducer

from streamsvm.connectors.records.promotions import Begun, Request, Served, write_promotion
from streamsvm.connectors.settings import topics as all_topics
from streamsvm.connectors.settings.loading import load

from .app import settings_of, some_stream
from .conftest import BOTH, READ_SECONDS


@BOTH
def test_a_new_trainer_and_a_replay_wait_for_what_a_dead_trainer_s_transaction_hides(topics, start_app):
    log = settings_of(topics, model="", control=topics.create("control", retention_ms=-1))
    challenger = {"[challenger]": {"name": "other"}, "challenger.model": {"C": 1.0}}
    app = start_app("new", log=log, daemon={"exactly_once": True, "follow": False}, **challenger)
    all_topics.create(load(app.config, {}), 1)
    events, labels = some_stream(200)
    topics.produce(log["topic"], events)
    topics.produce(log["labels"], labels)
    topics.produce(log["control"], [(None, write_promotion(Request("other")))])
    answers = f"{log['control']}-served"
    options = {"transactional_id": answers, "transaction_timeout_ms": 600_000}
    with KafkaProducer(bootstrap_servers=topics.bootstrap, **options) as dead:
        dead.init_transactions()
        dead.begin_transaction()
        dead.send(answers, write_promotion(Begun("other", 150, 0)), partition=0).get(READ_SECONDS)
        topics.produce(answers, [(None, write_promotion(Served("other", 0, 100, 0)))])
        for command, flags in (("run", []), ("replay", ["--app", "again"])):
            process = app.start(command=command, flags=flags)
            process.wait_for("waiting until a transaction ends")
            dead.abort_transaction()
            assert process.wait() == 0, process.said
            assert "'other' serves from offset 100 on" in process.said
            dead.begin_transaction()
            dead.send(answers, write_promotion(Begun("other", 150, 0)), partition=0).get(READ_SECONDS)
            topics.produce(answers, [(None, write_promotion(Served("other", 0, 100, 0)))])
        dead.abort_transaction()
