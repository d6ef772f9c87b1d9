"""Labels that come late to the trainer: it fits the probabilities to what it had predicted."""

from collections import deque

import numpy as np
import pytest
from logged import append_at as append
from logged import change
from logged import configure as small

from streamsvm import LASVM, OneVsRest
from streamsvm.connectors.trainer import trainer

START = 1_700_000_000_000  # milliseconds
LATE = 25  # events from an event to its label


def configure(folder, classes, algorithm="lasvm"):
    model = {"algorithm": algorithm, "cache_mb": 1.0}
    return small(folder, log={"labels": "labels"}, model=model, label={"classes": classes})


def stream(n, classes):
    rng = np.random.default_rng(5)
    for i in range(n):
        place = int(rng.integers(len(classes) or 2))
        x = {"a": round(place + 0.6 * rng.normal(), 6), "b": round(rng.normal(), 6)}
        yield i, x, classes[place] if classes else bool(place)


def said(model, x):
    return model.margins_one(x) if hasattr(model, "margins_one") else model.decision_function_one(x)


def twin(settings, examples, classes):
    """The model that a loop in Python teaches."""
    model = settings.model.made((lambda learner: OneVsRest(learner, list(classes))) if classes else (lambda made: made))
    waiting = deque()
    for i, x, y in examples:
        waiting.append((x, y, i, said(model, x)))
        if len(waiting) > LATE:
            x, y, i, margin = waiting.popleft()
            model.learn_one(x, y, id=i, margin=margin)
    return model


@pytest.mark.parametrize(
    ("classes", "algorithm"),
    [((), "lasvm"), (("a", "b", "c"), "lasvm"), ((), "auto"), ((), "mixture"), (("a", "b", "c"), "mixture")],
    ids=["two", "three", "tuned", "mixture", "mixture of three"],
)
def test_the_margin_of_the_prediction_is_kept_with_the_event(tmp_path, classes, algorithm):
    """Also over a restart, and over an event that is learned late while others are learned at once."""
    settings, examples = configure(tmp_path, classes, algorithm), list(stream(160, classes))
    for part in (examples[:90], examples[90:]):
        events = [(START + 10 * i, None, {"id": i, "x": x}) for i, x, _ in part]
        labels = [(START + 10 * i + 5, None, {"id": i - LATE, "y": examples[i - LATE][2]}) for i, *_ in part]
        append(settings, {"events": events, "labels": [label for label in labels if label[2]["id"] >= 0]})
        state = trainer.run(settings)[0]
    expected = twin(settings, examples, classes)
    assert state.model.n_seen == expected.n_seen == 160 - LATE
    for _, x, _ in examples[:20]:
        assert state.model.predict_proba_one(x) == pytest.approx(expected.predict_proba_one(x), rel=1e-6)
    assert state.model.support_ids.tolist() == expected.support_ids.tolist()
    if algorithm == "mixture":
        for mine, other in zip(*(list(m.shares_.values()) for m in (state.model, expected)), strict=True):
            assert mine == pytest.approx(other)
    if algorithm == "auto":
        assert state.model._tuner.scores == expected._tuner.scores
        assert LATE <= state.model._tuner.lag < 2 * LATE


def test_a_label_that_comes_with_its_event_is_learned_as_before(tmp_path):
    settings, examples = configure(tmp_path, ()), list(stream(80, ()))
    append(settings, {"events": [(START + 10 * i, None, {"id": i, "x": x, "y": y}) for i, x, y in examples]})
    state, expected = trainer.run(settings)[0], LASVM(**settings.model.parameters())
    for i, x, y in examples:
        expected.learn_one(x, y, id=i)
    assert state.model.digest() == expected.digest()


@pytest.mark.parametrize("classes", [(), ("a", "b", "c")], ids=["two", "three"])
def test_cuts_do_not_matter_where_labels_are_corrected_and_taken_back(tmp_path, classes):
    """Each label is followed at its place in the log, also where a cut has several of one event."""
    n, found = 60, set()
    examples = list(stream(n, classes))
    events = [(START, None, {"id": i, "x": x}) for i, x, _ in examples]
    labels = []
    for i, _, y in examples:
        other = (classes[0] if y != classes[0] else classes[1]) if classes else not y
        labels.append({"id": i, "y": other if i % 3 == 0 else y, "rev": 1})
        if i % 3 == 0:
            labels.append({"id": i - i % 2, "y": examples[i - i % 2][2], "rev": 2})
        if i % 7 == 0:
            labels.append({"id": i // 2, "op": "retract", "rev": 3})
    for batch in (1, 7, 1000):
        settings = change(configure(tmp_path / str(batch), classes), daemon={"batch": batch})
        append(settings, {"events": events, "labels": [(START + 1 + i, None, said) for i, said in enumerate(labels)]})
        state = trainer.run(settings)[0]
        assert state.counters.learned > n
        found.add((state.model.digest(), state.counters.learned))
    assert len(found) == 1
