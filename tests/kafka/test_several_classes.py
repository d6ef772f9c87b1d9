"""Ten digits on a real broker: a trainer that is killed again and again ends with the same model."""

import json
import random
import signal
import time

from sklearn.datasets import load_digits

from .app import digest, settings_of
from .test_trainer import by_src


def ten_digits(n):
    """Events, and their labels on a topic of their own: some twice, some corrected."""
    X, y = load_digits(return_X_y=True)
    start = int(time.time() * 1000) - 10 * n
    events, labels = [], []
    for i in range(n):
        at, label = start + 10 * i, int(y[i % len(y)])
        x = {str(j): value for j, value in enumerate(X[i % len(X)].tolist()) if value}
        events.append((None, json.dumps({"id": i, "x": x, "ts": at}).encode(), [], at))
        given = [{"id": i, "y": str(label) if i % 2 else label}]
        if i % 11 == 0:
            given.insert(0, {"id": i, "y": (label + 1) % 10})
        labels += [(None, json.dumps({**each, "ts": at + 50}).encode(), [], at + 50) for each in given]
    return events, labels


def test_ten_digits_killed_again_and_again(topics, start_app):
    n = 500
    log = settings_of(topics, model="")
    events, labels = ten_digits(n)
    topics.produce(log["topic"], events)
    topics.produce(log["labels"], labels)

    def trainer(name, predictions):
        return start_app(
            name,
            log={**log, "predictions": predictions},
            label={"max_classes": 10},
            model={"gamma": "scale"},
            daemon={"checkpoint_records": 125},
            group={"id": f"{log['topic']}-{name}", "instance": "a"},
        )

    whole = trainer("whole", topics.create("whole"))
    expected = whole.run("daemon.follow=false")
    app, rng = trainer("killed", log["predictions"]), random.Random(5)
    for _ in range(2):
        before = app.newest()
        process = app.start()
        process.let_work(lambda: app.newest() > before)  # noqa: B023 - called at once
        time.sleep(0.1 * rng.random())
        process.signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
    assert digest(app.run("daemon.follow=false")) == digest(expected)
    found = by_src(topics.read_all(log["predictions"]))
    assert len(found) == n
    right = [json.loads(found[f"{log['topic']}-0-{i}"])["label"] == y for i, y in enumerate(load_digits().target[:n])]
    assert sum(right[n // 2 :]) > 0.85 * n / 2
    last = json.loads(found[f"{log['topic']}-0-{n - 1}"])
    assert set(last["probabilities"]) == {str(digit) for digit in range(10)}
