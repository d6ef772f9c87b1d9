"""Questions and answers: what is written is read back."""

import json
import math
from dataclasses import replace

import pytest

from streamsvm.connectors.logs.transport import Record
from streamsvm.connectors.records.codec import Codec
from streamsvm.connectors.records.formats.base import BadRecord
from streamsvm.connectors.records.labels import MAX_QUERY_ID, Label, Place, write_answer
from streamsvm.connectors.records.people.questions import (
    MAX_QUESTION_BYTES,
    Question,
    fits_question,
    read_query_id,
    read_question,
    read_status,
    write_question,
    write_status,
)

QUESTION = Question(
    query_id="events-2-7",
    id="größe",
    partition=2,
    x={"a": 1.0, "b": -2},
    event={"text": "hello"},
    margin=-0.5,
    score=0.25,
    reason="boundary",
    asked_at=1000,
    expires_at=2000,
    unusual={"b": -4.5},
    model={"ver": 12, "n_support": 5},
)


def record(value, key=b"events-2-7"):
    return Record("questions", 2, 0, 0, key, value, ())


def test_a_question_is_read_as_it_was_written():
    assert read_question(record(write_question(QUESTION))) == QUESTION
    assert QUESTION.place == Place(2, "größe")
    one = {"id": "e7", "label": "spam", "share": 0.04}
    explained = replace(QUESTION, speaking=[one, {"id": 7, "label": False, "share": 0.0}])
    assert read_question(record(write_question(explained))) == explained
    suggested = replace(QUESTION, alike=[{"query_id": "events-2-8", "id": 8}], almost=True)
    assert read_question(record(write_question(suggested))) == suggested
    for damaged in (one, [one | {"share": 2.0}], [one | {"id": None}], [{"id": "e7"}]):
        with pytest.raises(BadRecord, match="speaking must be a list of id, label and share"):
            read_question(record(write_question(replace(QUESTION, speaking=damaged))))


def test_a_question_leaves_out_what_cannot_be_written_or_makes_it_too_large():
    endless = replace(QUESTION, event={"x": math.inf})
    assert read_question(record(write_question(endless))) == replace(QUESTION, event={})
    huge = replace(QUESTION, event={"text": "t" * MAX_QUESTION_BYTES})
    assert read_question(record(write_question(huge))) == replace(QUESTION, event={}, unusual={})


def test_questions_have_no_room_for_very_many_features():
    many = {f"feature-{i}": 1.0 for i in range(25_000)}
    assert fits_question({"a": 1.0}, 20)
    assert fits_question({"a": 1.0}, 1 << 20)
    assert not fits_question(many, len(json.dumps(many)))


@pytest.mark.parametrize("key", [None, b"", b"\xff"])
def test_a_question_needs_a_key(key):
    with pytest.raises(BadRecord, match="bad-question"):
        read_query_id(record(None, key))


def test_a_status_is_read_as_it_was_written():
    status = {"asked": 3, "remaining": None, "verdict": {"stop": False, "audit": True, "why": "w"}, "curve": []}
    assert read_status(record(write_status(status), b"status")) == status


def test_null_is_a_missing_field_of_a_status():
    status = {"asked": 3, "remaining": None, "verdict": None, "curve": None, "missed": None}
    assert read_status(record(write_status(status), b"status")) == {"asked": 3, "remaining": None}


def test_an_answer_is_a_label_that_names_its_question():
    answer = record(write_answer("events-2-7", Place(2, "e1"), "set", True, 5, "page:ann"), None)
    label = Codec().decode_label(answer)
    assert label == Label("e1", label.key, True, None, None, 5, "set", "page:ann", query_id="events-2-7")
    skipped = record(write_answer("q", Place(2, 7), "skip", None, 5, "page:ann"), None)
    assert Codec().decode_label(skipped) == Label(7, 7, None, None, None, 5, "skip", "page:ann", query_id="q")
    for query_id in ("", f', "query_id": "{"q" * (MAX_QUERY_ID + 1)}"', ', "query_id": 7'):
        assert Codec().decode_label(record(b'{"id": 1, "y": true%b}' % query_id.encode(), None)).query_id is None
