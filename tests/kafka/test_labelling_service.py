"""The labelling service on a real broker: answers on the right partition, through restarts of both."""

import json

import pytest
from asked import until

from streamsvm.connectors.labelling.service import LabellingService
from streamsvm.connectors.logs.transport import TopicMismatch, Unavailable
from streamsvm.connectors.settings.sections import DaemonSettings, LogSettings, Settings

from .conftest import CLIENT


def configure(topics, folder, **kafka):
    names = {
        "topic": topics.create("events", 2),
        "labels": topics.create("labels", 2),
        "questions": topics.create("questions", 2, cleanup_policy="compact"),
    }
    daemon = DaemonSettings(state_dir=folder / "state")
    options = {"client": CLIENT, "bootstrap_servers": topics.bootstrap, **kafka}
    return Settings(log=LogSettings(**names), daemon=daemon, kafka=options)


def ask(topics, settings, *names, partition=1):
    fields = {
        "x": {"a": 1.0}, "event": {}, "margin": 0.1, "score": 0.5, "reason": "boundary", "expires_at": 10**13,
        "unusual": {}, "model": {"ver": 1, "n_support": 1},
    }  # fmt: skip
    questions = [
        (name.encode(), json.dumps({"query_id": name, "id": f"event-{name}", "asked_at": i, **fields}).encode())
        for i, name in enumerate(names)
    ]
    topics.produce(settings.log.questions, questions, partition)


def answers(topics, settings):
    return [(record.partition, json.loads(record.value)) for record in topics.read_all(settings.log.labels)]


def test_answers_are_where_the_questions_are_and_are_remembered(topics, tmp_path):
    settings = configure(topics, tmp_path)
    topics.produce(settings.log.labels, [(None, b'{"id": 1, "y": true}')] * 100)
    ask(topics, settings, "q1", "q2")
    with LabellingService(settings) as service:
        until(lambda: service.stats()["loaded"])
        assert service.next("ann").query_id == "q1"
        assert service.answer("q1", True, "ann") == "first"
        assert [(part, label["id"]) for part, label in answers(topics, settings)[100:]] == [(1, "event-q1")]
        with LabellingService(settings) as other:  # which Kafka allows
            until(lambda: other.stats()["loaded"])
            assert other.next("bob").query_id == "q2"
            other.answer("q2", False, "bob")
        until(lambda: service.open() == [])
    ask(topics, settings, "q3", partition=0)
    with LabellingService(settings) as service:
        until(lambda: service.stats()["loaded"])
        assert [shown.query_id for shown in service.open()] == ["q3"]
        assert service.answer("q1", True, "ann") == "repeated"


def test_a_missing_topic_is_named(topics, tmp_path):
    settings = configure(topics, tmp_path)
    gone = Settings(
        log=LogSettings(topic=settings.log.topic, labels="none", questions="none-2"),
        daemon=settings.daemon,
        kafka=settings.kafka,
    )
    with LabellingService(gone) as service:
        until(lambda: service.stats()["trouble"])
        with pytest.raises(TopicMismatch, match="there is no topic 'none-2'"):
            service.check()


def test_a_broker_that_is_away_refuses_answers_until_it_is_back(private_broker, topics_of, tmp_path):
    topics = topics_of(private_broker.bootstrap)
    settings = configure(topics, tmp_path)
    ask(topics, settings, "q1", "q2")
    with LabellingService(settings) as service:
        until(lambda: service.stats()["loaded"])
        service.answer("q1", True, "ann")
        private_broker.stop()
        for _ in range(2):
            with pytest.raises(Unavailable):
                service.answer("q2", True, "ann")
        until(lambda: service.stats()["trouble"])
        assert service.next("ann").query_id == "q2"  # it can be looked at
        private_broker.start()
        until(lambda: repeated(service), 60)
        until(lambda: service.stats()["trouble"] is None, 60)
    assert [label["query_id"] for _, label in answers(topics, settings)] == ["q1", "q2"]


def repeated(service):
    try:
        return service.answer("q2", True, "ann") in ("first", "repeated")
    except Unavailable:
        return False
