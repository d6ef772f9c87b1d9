"""Bytes to events, labels and predictions: strict, total, and the same every time."""

import ast
import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamsvm.connectors.logs.transport import Record
from streamsvm.connectors.records.codec import MAX_BYTES, Codec, Event
from streamsvm.connectors.records.dead_letters import dead_letter_headers
from streamsvm.connectors.records.formats.base import REASONS, BadRecord
from streamsvm.connectors.records.labels import Label
from streamsvm.connectors.records.predictions import HEADERS, ModelVersion, Prediction, write_prediction
from streamsvm.estimators.inputs.named_rows import NamedRows

plain = Codec()
spam = Codec(positive="spam", negative="ham")
fixed = Codec(names=["a", "b"])


def event(**fields):
    return json.dumps({"id": "e1", "x": {"a": 1.0}} | fields).encode()


def label(**fields):
    return json.dumps({"id": "e1", "y": True} | fields).encode()


def record(value):
    return Record("events", 3, 1042, 1_700_000_000_000, None, value, ())


def decode(value, codec=plain):
    return codec.decode(record(value))


def decode_label(value, codec=plain):
    return codec.decode_label(record(value))


def reason(value, codec=plain, read=decode):
    with pytest.raises(BadRecord) as caught:
        read(value, codec)
    assert str(caught.value) == f"{caught.value.reason}: {caught.value.detail}"
    return caught.value.reason, caught.value.detail


# --- good events ------------------------------------------------------------------------------------------------------


def test_a_whole_event():
    decoded = decode(b'{"id": 7, "x": {"a": 1, "b": -2.5}, "y": true, "w": 2, "ts": "2026-11-20", "more": [1]}')
    assert decoded == Event(id=7, key=7, x={"a": 1, "b": -2.5}, y=True, w=2.0, ts="2026-11-20")


def test_only_id_and_features_are_required():
    assert decode(b'{"id": 7, "x": {}}') == Event(id=7, key=7, x={}, y=None, w=1.0, ts=None)
    assert decode(event(y=None)).y is None


@pytest.mark.parametrize("field", ["y", "w", "ts"])
def test_null_is_a_missing_field_of_an_event(field):
    """Serialisers write null for what is not set."""
    assert decode(event(**{field: None})) == decode(event())


@pytest.mark.parametrize(
    ("label", "meaning"), [(True, True), (False, False), (1, True), (0, False), (-1, False), (1.0, True), (-1.0, False)]
)
def test_labels(label, meaning):
    assert decode(event(y=label)).y is meaning
    assert decode(event(y=label), spam).y is meaning


def test_named_labels():
    assert decode(event(y="spam"), spam).y is True
    assert decode(event(y="ham"), spam).y is False


def test_names_that_are_numbers_are_numbers_too():
    """With the classes "1" and "2", the number 1 was the positive one, and 2 was refused."""
    codec = Codec(positive="2", negative="1")
    assert [decode(event(y=y), codec).y for y in (1, 2, "1", "2", 1.0, True, False)] == [
        False, True, False, True, False, True, False
    ]  # fmt: skip


def test_a_list_of_numbers_is_named_by_position_or_by_the_configured_names():
    assert decode(event(x=[5, 6])).x == {"0": 5, "1": 6}
    assert decode(event(x=[5, 6]), fixed).x == {"a": 5, "b": 6}


@pytest.mark.parametrize("bad", [True, "1", None, 1e15, -1e15, 10**15, 10**309, [1.0]], ids=str)
def test_a_long_list_of_numbers_is_checked_as_a_short_one_is(bad):
    """A long list becomes an array, a short one a dict."""
    for n in (3, 40, 784):
        x = [0.25 * i for i in range(n - 1)] + [7]
        found = decode(event(x=x)).x
        assert found == {str(i): value for i, value in enumerate(x)}
        assert NamedRows.of([found, found]).is_table
        x[n // 2] = bad
        assert reason(event(x=x))[0] == "bad-feature"
        assert reason(event(x=x), fixed)[0] == "bad-features"


def test_integer_ids_are_their_own_key_and_others_are_hashed():
    assert decode(event(id=-(2**63))).key == -(2**63)
    big, text = decode(event(id=2**63)), decode(event(id="user-1"))
    assert text.key == -8583321985082544998
    assert len({big.key, text.key, decode(event(id="user-2")).key}) == 3
    assert all(-(2**63) <= e.key < 2**63 for e in (big, text))


def test_text_beyond_ascii_survives():
    decoded = decode('{"id": "é😀\\ud83d\\ude00", "x": {"größe": 1}}'.encode())
    assert decoded.id == "é😀😀"
    assert decoded.x == {"größe": 1}


def test_deep_fields_are_ignored_up_to_a_fixed_depth():
    assert decode(b'{"id": 1, "x": {}, "more": ' + b"[" * 99 + b"]" * 99 + b"}").id == 1
    assert decode(b'{"id": 1, "x": {}, "more": [' + b"[]," * 200 + b"0]}").id == 1


def test_large_integers_stay_integers():
    assert type(decode(event(id=2**64)).id) is int
    assert type(decode(event(ts=1_700_000_000_000_000_001)).ts) is int
    assert decode(event(more=10**400)).id == "e1"


@pytest.mark.parametrize("x", [{"b": 1, "a": -2.5, "c": -0.0}, [1, 2.5], {}])
def test_features_of_a_value_are_those_of_its_event(x):
    value = event(x=x)
    assert repr(plain.features(value)) == repr(decode(value).x)


def test_features_of_a_value_that_only_the_strict_parser_reads():
    assert plain.features(b'{"id": 1, "x": {"a": 2}, "more": 1e999}') == {"a": 2}


# --- bad records ------------------------------------------------------------------------------------------------------

BAD = {
    "tombstone": (None, "null-value"),
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
    "deeper than allowed": (b'{"id": 1, "x": {}, "more": ' + b"[" * 100 + b"]" * 100 + b"}", "not-json"),
    "huge integer": (b'{"id": 1, "x": {"a": ' + b"9" * 5000 + b"}}", "not-json"),
    "huge": (b" " * MAX_BYTES + event(), "too-large"),
    "list": (b"[1, 2]", "not-an-object"),
    "number": (b"3", "not-an-object"),
    "repeated field": (b'{"id": 1, "id": 2, "x": {}}', "duplicate-field"),
    "repeated feature": (b'{"id": 1, "x": {"a": 1, "a": 2}}', "duplicate-field"),
    "repeated ignored field": (b'{"id": 1, "x": {}, "more": {"a": 1, "a": 2}}', "duplicate-field"),
    "repeated long field": (b'{"id": 1, "%b": 1, "%b": 2}' % (b"a" * 9999, b"a" * 9999), "duplicate-field"),
    "repeated field by escape": (b'{"id": "a:b", "\\u0069d": 2, "x": {}}', "duplicate-field"),
    "repeated field behind an escaped colon": (b'{"id": 1, "id": "\\u003A", "x": {}}', "duplicate-field"),
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
    "weight overflows": (b'{"id": 1, "x": {}, "w": 1e999}', "bad-weight"),
    "time object": (event(ts={}), "bad-ts"),
    "time boolean": (event(ts=False), "bad-ts"),
    "time overflows": (b'{"id": 1, "x": {}, "ts": 1e999}', "bad-ts"),
    "time too large": (event(ts=1e300), "bad-ts"),
    "time too large an integer": (event(ts=10**400), "bad-ts"),
    "no date": (event(ts="9999-99-99"), "bad-ts"),
    "no year of ours": (event(ts="9999-12-31"), "bad-ts"),
    "time of another format": (event(ts="27/11/2026 12:00:00"), "bad-ts"),
    "time empty": (event(ts=""), "bad-ts"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_records_are_refused_with_a_reason(name):
    value, expected = BAD[name]
    found, detail = reason(value)
    assert found == expected
    assert 0 < len(detail) < 300


@pytest.mark.long
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
        decoded = decode(value, codec)
    except BadRecord:
        return
    assert all(math.isfinite(number) for number in decoded.x.values())
    assert repr(codec.features(value)) == repr(decoded.x)


def test_a_repeated_field_among_many_takes_no_quadratic_time():
    """A record of 1 MB took minutes."""
    names = b"".join(b'"%x":0,' % i for i in range(80_000))
    assert reason(b'{"id":1,"id":2,"x":{' + names + b'"a":1}}')[0] == "duplicate-field"


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


# --- labels -----------------------------------------------------------------------------------------------------------


def test_a_whole_label():
    value = label(id=7, y="spam", weight=2, ts="2026-11-20T10:11:12Z", source="human", rev=3, op="set", annotator="ann")
    expected = Label(id=7, key=7, y=True, w=2.0, ts="2026-11-20T10:11:12Z", rev=3, op="set", source="human")
    assert decode_label(value, spam) == expected


def test_only_id_and_label_are_required():
    key = decode(event()).key
    assert decode_label(label()) == Label("e1", key, y=True, w=None, ts=None, rev=None, op="set", source=None)


@pytest.mark.parametrize("field", ["weight", "ts", "rev", "op", "source", "query_id"])
def test_null_is_a_missing_field_of_a_label(field):
    assert decode_label(label(**{field: None})) == decode_label(label())


def test_a_retraction_has_no_label():
    assert decode_label(b'{"id": 7, "op": "retract"}') == Label(7, 7, None, None, None, None, "retract", None)
    assert decode_label(label(op="retract")).y is None


def test_labels_are_json_in_every_format():
    assert decode_label(label(), Codec(format="float32")) == decode_label(label())


BAD_LABELS = {
    "tombstone": (None, "null-value"),
    "text": (b"yes", "not-json"),
    "huge": (b" " * MAX_BYTES + label(), "too-large"),
    "list": (b"[1, 2]", "not-an-object"),
    "repeated field": (b'{"id": 1, "y": 1, "y": 0}', "duplicate-field"),
    "no id": (b'{"y": 1}', "missing-field"),
    "null id": (label(id=None), "bad-id"),
    "no label": (b'{"id": 1}', "bad-label"),
    "null label": (label(y=None), "bad-label"),
    "label 2": (label(y=2), "bad-label"),
    "weight zero": (label(weight=0), "bad-weight"),
    "time boolean": (label(ts=True), "bad-ts"),
    "revision negative": (label(rev=-1), "bad-rev"),
    "revision too large": (label(rev=2**63), "bad-rev"),
    "revision beyond 64 bits": (label(rev=2**70), "bad-rev"),
    "revision real": (label(rev=1.0), "bad-rev"),
    "revision boolean": (label(rev=True), "bad-rev"),
    "operation unknown": (label(op="delete"), "bad-op"),
    "operation list": (label(op=["set"]), "bad-op"),
    "source number": (label(source=1), "bad-source"),
}


@pytest.mark.parametrize("name", BAD_LABELS)
def test_bad_labels_are_refused_with_a_reason(name):
    value, expected = BAD_LABELS[name]
    assert reason(value, read=decode_label)[0] == expected


def test_the_largest_revision():
    assert decode_label(label(rev=2**63 - 1)).rev == 2**63 - 1


# --- predictions ------------------------------------------------------------------------------------------------------


def test_a_prediction():
    decoded = decode(event(ts=12))
    value = write_prediction(plain, decoded, Prediction(0.5, 0.75), ModelVersion(40, 64), "events-0-70")
    assert value == (
        b'{"id":"e1","label":true,"score":0.75,"margin":0.5,"model":{"ver":40,"offset":64},"src":"events-0-70","ts":12}'
    )


def test_predictions_use_the_configured_names():
    def predicted(margin):
        value = write_prediction(spam, decode(event(), spam), Prediction(margin, 0.5), ModelVersion(0, 0), "s")
        return json.loads(value)["label"]

    assert (predicted(0.1), predicted(-0.1)) == ("spam", "ham")


def test_predictions_keep_times_and_ids_beyond_64_bits_and_beyond_ascii():
    for id_ in ("größe😀", 2**70):
        value = write_prediction(
            plain, decode(event(id=id_, ts="2026-11-20")), Prediction(1e-7, 0.5), ModelVersion(0, 0), "s"
        )
        fields = json.loads(value)
        assert (fields["id"], fields["ts"], fields["margin"]) == (id_, "2026-11-20", 1e-7)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_predictions_must_be_finite(bad):
    decoded = decode(event())
    with pytest.raises(ValueError, match="must be finite numbers"):
        write_prediction(plain, decoded, Prediction(bad, 0.5), ModelVersion(0, 0), "s")
    with pytest.raises(ValueError, match="must be finite numbers"):
        write_prediction(plain, decoded, Prediction(0.5, bad), ModelVersion(0, 0), "s")


def test_headers_say_what_a_prediction_is():
    assert dict(HEADERS) == {"sv-schema": b"prediction:1"}


def test_dead_letter_headers_say_where_from_and_why():
    error = BadRecord("not-json", "it is cut")
    again = record(b"{")._replace(headers=(("sv-dlq-attempts", b"1"),))
    headers = dict(dead_letter_headers(again, "decode", error, "app-1"))
    assert headers == {
        "sv-dlq-topic": b"events",
        "sv-dlq-partition": b"3",
        "sv-dlq-offset": b"1042",
        "sv-dlq-timestamp": b"1700000000000",
        "sv-dlq-stage": b"decode",
        "sv-dlq-reason": b"not-json",
        "sv-dlq-error": b"it is cut",
        "sv-dlq-attempts": b"2",
        "sv-dlq-app": b"app-1",
    }


def test_dead_letter_headers_are_bounded():
    error = BadRecord("reason", "a\ud800" * 100_000)
    headers = dict(dead_letter_headers(record(b""), "decode", error, "app"))
    assert headers["sv-dlq-error"] == b"a\\ud800" * 500
    assert headers["sv-dlq-attempts"] == b"1"


# --- limits -----------------------------------------------------------------------------------------------------------

tight = Codec(max_features=3)


@pytest.mark.parametrize("x", [{"a": 1, "b": 2, "c": 3}, [1, 2, 3], {"a" * 256: 1}, {"é" * 256: 1}])
def test_features_within_the_limits(x):
    assert len(decode(event(x=x), tight).x) == len(x)


@pytest.mark.parametrize(
    ("fields", "expected", "detail"),
    [
        ({"x": {"a": 1, "b": 2, "c": 3, "d": 4}}, "too-many-features", "x has 4 features, more than"),
        ({"x": [0] * 4}, "too-many-features", "x has 4 features, more than"),
        ({"x": {"a" * 257: 1}}, "long-feature-name", "... has 257 characters, more than 256"),
        ({"x": {"a": 1, "b" * 9999: 1}}, "long-feature-name", "... has 9999 characters"),
        ({"id": "a" * 2049}, "bad-id", "id has 2049 characters, more than 2048"),
        ({"id": 10**2048}, "bad-id", "id has 2049 characters"),
        ({"id": ""}, "bad-id", "id must be an integer, or a string that is not empty, got ''"),
        ({"ts": "a" * 2049}, "bad-ts", "ts has 2049 characters"),
    ],
)
def test_what_is_beyond_the_limits_is_refused(fields, expected, detail):
    found, text = reason(event(**fields), tight)
    assert found == expected
    assert detail in text
    assert len(text) < 200


@pytest.mark.parametrize(
    ("fields", "expected"), [({"id": "a" * 2049}, "bad-id"), ({"source": "a" * 2049}, "bad-source")]
)
def test_labels_have_limits_too(fields, expected):
    assert reason(label(**fields), tight, decode_label)[0] == expected


@pytest.mark.parametrize("read", ["decode", "decode_label"])
def test_keys_have_a_limit(read):
    value = event(y=True)
    getattr(tight, read)(record(value)._replace(key=b"k" * 2048))
    with pytest.raises(BadRecord, match="bad-key: the key has 2049 bytes"):
        getattr(tight, read)(record(value)._replace(key=b"k" * 2049))


def test_ordinary_records_do_not_reach_the_limits():
    names = {f"{'n' * 250}{i}": 1.0 for i in range(2000)}
    decode(event(id="i" * 2048, x=names, ts="2026-11-20T10:11:12.131415+01:00"))
    decode(event(x=[0] * 100_000))


def test_a_prediction_is_bounded():
    decoded = decode(event(id="\U0001f600" * 2048, ts="2026-11-20T10:11:12.131415+01:00"))
    value = write_prediction(plain, decoded, Prediction(0.0, 0.5), ModelVersion(1, 2), "events-0-1")
    assert len(value) < 32_000


def test_every_reason_of_a_refusal_is_known():
    """Counters begin with all of them."""
    found = set()
    for path in (Path(__file__).parents[3] / "connectors").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "BadRecord":
                assert isinstance(node.args[0], ast.Constant), f"{path}, line {node.lineno}"
                found.add(node.args[0].value)
    assert found == set(REASONS)
