"""Readers of the topic of labels come to the same labels as the trainer."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from world import World, configure

from streamsvm.connectors.logs.embedded import LocalLog
from streamsvm.connectors.records.people.label_history import LabelHistory
from streamsvm.connectors.records.people.questions import recheck_id

PEOPLE = ("page:ann#1", "page:bob#2", "terminal:cem")
STEPS = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from(PEOPLE), st.sampled_from([True, False, "skip", "retract"])),
    max_size=30,
)


@pytest.mark.long
@settings(max_examples=15, deadline=None)
@given(steps=STEPS, n=st.integers(1, 3))
def test_the_history_holds_the_labels_that_the_trainer_holds(tmp_path_factory, steps, n):
    world = World(configure(tmp_path_factory.mktemp("hearing"), answers_per_question=n), n=20)
    world.run()
    questions = world.open()
    for rev, (place, who, said) in enumerate(steps):
        asked = questions[place]
        fields = {"y": said} if isinstance(said, bool) else {"op": said}
        world.answer({"id": asked["id"], "query_id": asked["query_id"], "source": who, "rev": rev, **fields})
    state, codec = world.run(), world.settings.codec()
    history = LabelHistory(codec, n)
    with LocalLog(world.settings.log.dir) as log:
        if steps:
            list(history.read(log, "labels"))
    holding = {entry.label.key: entry.label.y for entry in history.labels()}
    keys = [codec.decode(record).key for record in world.read("events")]
    assert holding == {key: y for key in keys if (y := state.join.label_of(key)) is not None}


def test_a_recheck_that_was_taken_back_leaves_the_label_before(tmp_path):
    world = World(configure(tmp_path), n=20)
    world.run()
    asked = world.open()[0]
    answer = {"id": asked["id"], "source": "terminal:ann"}
    again = {**answer, "query_id": recheck_id("events-0-1")}
    world.answer(
        {**answer, "query_id": asked["query_id"], "y": True, "rev": 1},
        {**again, "y": False, "rev": 2},
        {**again, "op": "retract", "rev": 3},
    )
    history = LabelHistory(world.settings.codec(), 1)
    with LocalLog(world.settings.log.dir) as log:
        held = [entry.after for entry in history.read(log, "labels")]
    assert held == [True, False, True]
    assert [entry.label.y for entry in history.labels()] == [True]
