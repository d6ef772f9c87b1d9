"""Bytes to events and predictions: strict, total, and the same every time."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamsvm.connectors.transport import Record
from streamsvm.connectors.wire import MAX_BYTES, BadRecord, Codec, Event, ModelVersion, dead_letter_headers

plain = Codec()
spam = Codec(positive="spam", negative="ham")
fixed = Codec(names=["a", "b"])


def event(**fields):
    return json.dumps({"id": "e1", "x": {"a": 1.0}} | fields).encode()


def reason(value, codec=plain):
    with pytest.raises(BadRecord) as caught:
        codec.decode(value)
    assert str(caught.value) == f"{caught.value.reason}: {caught.value.detail}"
    return caught.value.reason, caught.value.detail


# --- good events ------------------------------------------------------------------------------------------------------


def test_a_whole_event():
    decoded = plain.decode(b'{"id": 7, "x": {"a": 1, "b": -2.5}, "y": true, "w": 2, "ts": "2026-11-20", "more": [1]}')
    assert decoded == Event(id=7, key=7, x={"a": 1, "b": -2.5}, y=True, w=2.0, ts="2026-11-20")


def test_only_id_and_features_are_required():
    assert plain.decode(b'{"id": 7, "x": {}}') == Event(id=7, key=7, x={}, y=None, w=1.0, ts=None)
    assert plain.decode(event(y=None)).y is None


@pytest.mark.parametrize(
    ("label", "meaning"), [(True, True), (False, False), (1, True), (0, False), (-1, False), (1.0, True), (-1.0, False)]
)
def test_labels(label, meaning):
    assert plain.decode(event(y=label)).y is meaning
    assert spam.decode(event(y=label)).y is meaning


def test_named_labels():
    assert spam.decode(event(y="spam")).y is True
    assert spam.decode(event(y="ham")).y is False


def test_a_list_of_numbers_is_named_by_position_or_by_the_configured_names():
    assert plain.decode(event(x=[5, 6])).x == {"0": 5, "1": 6}
    assert fixed.decode(event(x=[5, 6])).x == {"a": 5, "b": 6}


def test_integer_ids_are_their_own_key_and_others_are_hashed():
    assert plain.decode(event(id=-(2**63))).key == -(2**63)
    big, text = plain.decode(event(id=2**63)), plain.decode(event(id="user-1"))
    assert text.key == -8583321985082544998
    assert len({big.key, text.key, plain.decode(event(id="user-2")).key}) == 3
    assert all(-(2**63) <= e.key < 2**63 for e in (big, text))


def test_text_beyond_ascii_survives():
    decoded = plain.decode('{"id": "é😀\\ud83d\\ude00", "x": {"größe": 1}}'.encode())
    assert decoded.id == "é😀😀"
    assert decoded.x == {"größe": 1}


# --- bad records ------------------------------------------------------------------------------------------------------

BAD = {
    "empty": (b"", "not-json"),
    "text": (b"hello", "not-json"),
    "two objects": (event() + event(), "not-json"),
    "cut": (event()[:-1], "not-json"),
    "byte order mark": (b"\xef\xbb\xbf" + event(), "not-json"),
    "not UTF-8": (b'{"id": "\xff", "x": {}}', "not-utf8"),
    "UTF-16": (event().decode().encode("utf-16"), "not-utf8"),
    "half a surrogate pair": (b'{"id": "\\ud800", "x": {}}', "not-utf8"),
    "half a pair in a feature": (b'{"id": 1, "x": {"\\uDC00": 1}}', "not-utf8"),
    "NaN": (b'{"id": 1, "x": {"a": NaN}}', "not-json"),
    "Infinity": (b'{"id": 1, "x": {"a": -Infinity}}', "not-json"),
    "deep": (b"[" * 100_000, "not-json"),
    "deep object": (b'{"a":' * 100_000, "not-json"),
    "huge integer": (b'{"id": 1, "x": {"a": ' + b"9" * 5000 + b"}}", "not-json"),
    "huge": (b" " * MAX_BYTES + event(), "too-large"),
    "list": (b"[1, 2]", "not-an-object"),
    "number": (b"3", "not-an-object"),
    "repeated field": (b'{"id": 1, "id": 2, "x": {}}', "duplicate-field"),
    "repeated feature": (b'{"id": 1, "x": {"a": 1, "a": 2}}', "duplicate-field"),
    "no id": (b'{"x": {"a": 1}}', "missing-field"),
    "no features": (b'{"id": 1}', "missing-field"),
    "null id": (event(id=None), "bad-id"),
    "empty id": (event(id=""), "bad-id"),
    "boolean id": (event(id=True), "bad-id"),
    "real id": (event(id=1.5), "bad-id"),
    "features null": (event(x=None), "bad-features"),
    "features text": (event(x="1,2"), "bad-features"),
    "feature text": (event(x={"a": "1"}), "bad-feature"),
    "feature boolean": (event(x={"a": True}), "bad-feature"),
    "feature null": (event(x={"a": None}), "bad-feature"),
    "feature nested": (event(x={"a": {"b": 1}}), "bad-feature"),
    "feature list": (event(x=[1, [2]]), "bad-feature"),
    "feature overflows": (b'{"id": 1, "x": {"a": 1e999}}', "bad-feature"),
    "feature too large": (event(x={"a": 1e15}), "bad-feature"),
    "feature too large an integer": (event(x={"a": -(10**400)}), "bad-feature"),
    "label text": (event(y="yes"), "bad-label"),
    "label 2": (event(y=2), "bad-label"),
    "label list": (event(y=[1]), "bad-label"),
    "label object": (event(y={}), "bad-label"),
    "weight zero": (event(w=0), "bad-weight"),
    "weight negative": (event(w=-1), "bad-weight"),
    "weight text": (event(w="1"), "bad-weight"),
    "weight boolean": (event(w=True), "bad-weight"),
    "weight null": (event(w=None), "bad-weight"),
    "weight overflows": (b'{"id": 1, "x": {}, "w": 1e999}', "bad-weight"),
    "time object": (event(ts={}), "bad-ts"),
    "time boolean": (event(ts=False), "bad-ts"),
    "time overflows": (b'{"id": 1, "x": {}, "ts": 1e999}', "bad-ts"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_records_are_refused_with_a_reason(name):
    value, expected = BAD[name]
    found, detail = reason(value)
    assert found == expected
    assert 0 < len(detail) < 300


@pytest.mark.parametrize("codec", [plain, spam, fixed])
@given(
    value=st.binary(max_size=60)
    | st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from("idxywtsab"), inner, max_size=5),
    ).map(lambda value: json.dumps(value).encode())
)
def test_no_bytes_at_all_do_anything_but_decode_or_be_refused(codec, value):
    try:
        decoded = codec.decode(value)
    except BadRecord:
        return
    assert all(math.isfinite(number) for number in decoded.x.values())


def test_messages_name_the_feature_and_its_value():
    assert reason(event(x={"a": 1, "age": "old"}))[1] == "feature 'age' must be a number below 1e15 in size, got 'old'"
    assert "'age'" in reason(b'{"id": 1, "x": {"age": 1e999}}')[1]


def test_configured_names_are_what_every_event_must_have():
    assert reason(event(x={"a": 1, "c": 2}), fixed) == ("bad-features", "x lacks 'b' and has unknown 'c'")
    assert reason(event(x={"a": 1}), fixed) == ("bad-features", "x lacks 'b'")
    assert reason(event(x=[1, 2, 3]), fixed) == ("bad-features", "x has 3 numbers, expected 2")


def test_unconfigured_label_names_are_refused():
    assert reason(event(y="spam"))[0] == "bad-label"
    assert "'spam'/'ham'" in reason(event(y="eggs"), spam)[1]


# --- predictions ------------------------------------------------------------------------------------------------------


def test_a_prediction():
    decoded = plain.decode(event(ts=12))
    value = plain.encode(decoded, score=0.75, margin=0.5, model=ModelVersion(40, 64), src="events-0-70")
    assert value == (
        b'{"id":"e1","label":true,"score":0.75,"margin":0.5,"model":{"ver":40,"offset":64},"src":"events-0-70","ts":12}'
    )


def test_predictions_use_the_configured_names():
    def label(margin):
        value = spam.encode(spam.decode(event()), score=0.5, margin=margin, model=ModelVersion(0, 0), src="s")
        return json.loads(value)["label"]

    assert (label(0.1), label(-0.1)) == ("spam", "ham")


def test_dead_letter_headers_say_where_from_and_why():
    record = Record("events", 3, 1042, 0, None, b"{", ())
    headers = dict(dead_letter_headers(record, "decode", BadRecord("not-json", "it is cut")))
    assert headers == {
        "sv-dlq-topic": b"events",
        "sv-dlq-partition": b"3",
        "sv-dlq-offset": b"1042",
        "sv-dlq-stage": b"decode",
        "sv-dlq-reason": b"not-json",
        "sv-dlq-error": b"it is cut",
    }
