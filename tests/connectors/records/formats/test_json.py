"""The quick JSON parser decides as the strict one does: the same fields, of the same types, or the same refusal."""

import json

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from streamsvm.connectors.logs.transport import Record
from streamsvm.connectors.records.codec import Codec
from streamsvm.connectors.records.formats import json as json_format
from streamsvm.connectors.records.formats.base import BadRecord

codecs = {"json": Codec(), "json, fixed names": Codec(names=["a", "b:c"], positive="spam", negative="ham")}


def record(value):
    return Record("events", 0, 0, 0, None, value, ())


def outcome(read, value):
    try:
        return repr(read(record(value)))  # repr tells 1 from 1.0, and 0.0 from -0.0
    except BadRecord as error:
        return error.reason, error.detail


def strict_outcome(read, value):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_format, "_quick", lambda value: None)
        return outcome(read, value)


def check(value):
    for codec in codecs.values():
        for read in (codec.decode, codec.decode_label):
            assert outcome(read, value) == strict_outcome(read, value)


# --- any bytes --------------------------------------------------------------------------------------------------------

text = st.text(max_size=4) | st.sampled_from(
    ["", "a:b", "user:17", "2026-11-20T10:11:12Z", "::", "set", "spam", "\\", '"']
)
integers = st.integers() | st.sampled_from(
    [2**63 - 1, 2**63, 2**64 - 1, 2**64, -(2**63), -(2**63) - 1, 10**30, 10**400]
)
numbers = integers | st.floats() | st.sampled_from([-0.0, 1e15, 1e-400, 5e-324, 1e22, 2.0**63, 2.0**64])
names = st.sampled_from(["a", "b:c", "id", "x", "y"]) | text
features = st.dictionaries(names, numbers, max_size=4) | st.lists(numbers, max_size=3)
anything = st.recursive(
    st.none() | st.booleans() | numbers | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=6,
)
objects = st.fixed_dictionaries(
    {"id": text | integers, "x": features},
    optional={
        "y": st.booleans() | st.sampled_from([0, 1, -1, "spam"]),
        "w": numbers,
        "weight": numbers,
        "rev": numbers,
        "op": st.sampled_from(["set", "retract"]),
        "source": text,
        "ts": numbers | text,
        "more": anything,
    },
)


@st.composite
def written(draw, objects=objects):
    ensure_ascii, spaced = draw(st.booleans()), draw(st.booleans())
    value = json.dumps(draw(objects), ensure_ascii=ensure_ascii, separators=None if spaced else (",", ":"))
    return value.encode("utf-8", "surrogatepass")


PIECES = [
    *(
        b"",
        b":",
        b",",
        b'"',
        b"[",
        b"]",
        b"{",
        b"}",
        b"\t",
        b"\x00",
        b"\x7f",
        b"\xff",
        b"\xef\xbb\xbf",
        b"\xed\xa0\x80",
    ),
    *(
        b'"id":1,',
        b'"a":1,',
        b'"a:b":":",',
        b'{"a":1,"a":":"}',
        b"\\/",
        b"\\u003a",
        b"\\u003A",
        b"\\ud800",
        b"\\ud83d\\ude00",
    ),
    *(b"NaN", b"-0", b"-0.0", b"1e400", b"01", b"1.", b"9" * 25, b"9" * 5000),
]


@st.composite
def mutated(draw):
    """JSON with pieces repeated, moved, or replaced by pieces on which parsers are known to differ."""
    value = draw(written())
    for _ in range(draw(st.integers(1, 3))):
        start, stop = sorted((draw(st.integers(0, len(value))), draw(st.integers(0, len(value)))))
        piece = draw(st.sampled_from(PIECES) | st.binary(max_size=3) | st.just(value[start:stop] * 2))
        value = value[:start] + piece + value[stop:]
    return value


@pytest.mark.long
@given(written() | mutated() | st.binary(max_size=40) | anything.map(lambda value: json.dumps(value).encode()))
@settings(max_examples=500)
@example(b'{"id":1,"id":":","x":{}}')
@example(b'{"id":1,"id":"\\u003a","x":{}}')
@example(b'{"id":"\\u003a\\u003A","x":{"a":1,"a":2}}')
@example(b'{"id":1,"x":{"a":1e400}}')
@example(b'{"id":1,"x":{},"ts":18446744073709551616}')
@example(b'{"id":1,"x":{},"ts":1e19}')
@example(b'{"id":1,"x":{},"y":1,"more":' + b"[" * 98 + b'{"a":1}' + b"]" * 98 + b"}")
@example(b'{"id":1,"x":{},"y":1,"more":' + b"[" * 99 + b'{"a":1}' + b"]" * 99 + b"}")
@example(b'{"id":1,"x":{},"y":1,"more":' + b'{"a":' * 1010 + b"1" + b"}" * 1010 + b"}")
@example(b'{"id":1,"x":{},"y":1,"more":' + b"[" * 2000 + b"]" * 2000 + b"}")
def test_both_parsers_decide_alike(value):
    check(value)


@given(written())
def test_features_alone_are_those_of_the_event(value):
    for codec in codecs.values():
        try:
            decoded = codec.decode(record(value))
        except BadRecord:
            continue
        assert repr(codec.features(value)) == repr(decoded.x)


@given(st.floats(allow_nan=False, allow_infinity=False), st.integers(-1, 17))
def test_numbers_are_read_as_the_same_floats(number, digits):
    texts = [repr(number), f"{number:.{digits + 1}e}", f"{number:.{digits + 1}f}"]
    check(json.dumps({"id": 1, "x": {}, "ts": 0}).replace('"ts": 0', f'"ts": {texts[digits % 3]}').encode())
    if abs(number) < 1e15:
        check(f'{{"id": 1, "x": {{"a": {texts[digits % 3]}}}}}'.encode())


# --- what must be quick -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value",
    [
        b'{"id": "user:17", "x": {"a": 1.5, "b": -2}, "y": true, "ts": "2026-11-20T10:11:12Z"}',
        b'{"id": 17, "x": [1, 2.5]}',
        b'{"id": 17, "x": {"sensor:1": 1}, "more": {"a:b": ["c:d", {"e": null}]}}',
        '{"id": "größe", "x": {"größe": 1}}'.encode(),
        json.dumps({"id": 'größe \\ "a/b"', "x": {"größe": 1}}).encode(),
        b'{"id": "user:17", "y": 1, "source": "human:ann", "ts": "2026-11-20T10:11:12Z", "rev": 2}',
    ],
)
def test_ordinary_records_do_not_need_the_strict_parser(value):
    assert json_format._quick(value) == json.loads(value)


def test_a_large_record_is_refused_without_the_strict_parser(monkeypatch):
    """It takes several times as long as the quick one, and a hostile producer may send many such records."""
    monkeypatch.setattr(json_format, "_strict", None)
    many = {f"feature-{i}": 1.0 for i in range(2000)}
    with pytest.raises(BadRecord, match="bad-weight: w must be a positive number"):
        codecs["json"].decode(record(json.dumps({"id": 1, "x": many, "w": -1}).encode()))
    with pytest.raises(BadRecord, match="bad-feature: feature 'high'"):
        codecs["json"].decode(record(json.dumps({"id": 1, "x": {**many, "high": 10**20}}).encode()))
