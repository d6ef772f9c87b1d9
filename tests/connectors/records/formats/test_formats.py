"""Events in other formats than JSON: packed numbers and Avro."""

import io
import json
import math
import struct
import sys

import fastavro
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from streamsvm.connectors.logs.transport import Record
from streamsvm.connectors.records.codec import MAX_BYTES, Codec, Event
from streamsvm.connectors.records.formats.avro import SchemaError
from streamsvm.connectors.records.formats.base import BadRecord
from streamsvm.connectors.records.raw import Reading
from streamsvm.connectors.runtime.libraries import LibraryMissing


def record(value, headers=()):
    return Record("events", 0, 0, 0, None, value, headers)


def reason(codec, value, headers=()):
    with pytest.raises(BadRecord) as caught:
        codec.decode(record(value, headers))
    return caught.value.reason


# --- float32 ----------------------------------------------------------------------------------------------------------

packed = Codec(format="float32")
fixed = Codec(["a", "b"], "spam", "ham", format="float32")
TWO = struct.pack("<2f", 1.5, -2)
ID = ("sv-id", b"e1")


def test_a_whole_packed_event():
    headers = [
        ("traceparent", b"\xff"),
        ("sv-id", "größe:1".encode()),
        ("sv-y", b"spam"),
        ("sv-w", b"2"),
        ("sv-ts", b"12"),
    ]
    event = fixed.decode(record(TWO, headers))
    assert event == Event(id="größe:1", key=event.key, x={"a": 1.5, "b": -2.0}, y=True, w=2.0, ts=12)
    assert event.key == Codec().decode(record('{"id": "größe:1", "x": {}}'.encode())).key


def test_a_packed_event_needs_an_id_only():
    event = packed.decode(record(TWO, [ID]))
    assert event[2:] == ({"0": 1.5, "1": -2.0}, None, 1.0, None)
    assert packed.decode(record(b"", [ID])).x == {}


@pytest.mark.parametrize("content", [b"", b"null"])
@pytest.mark.parametrize("header", ["sv-y", "sv-w", "sv-ts"])
def test_an_empty_header_is_a_missing_one(header, content):
    assert packed.decode(record(TWO, [ID, (header, content)])) == packed.decode(record(TWO, [ID]))


def test_packed_events_have_limits():
    tight = Codec(format="float32", max_features=2)
    assert len(tight.decode(record(TWO, [ID])).x) == 2
    assert reason(tight, TWO + TWO, [ID]) == "too-many-features"
    assert reason(tight, TWO, [("sv-id", b"a" * 2049)]) == "bad-id"
    assert reason(tight, TWO, [ID, ("sv-ts", b"a" * 2049)]) == "bad-ts"


@pytest.mark.parametrize(
    ("text", "meaning"), [("1", True), ("+1", True), ("true", True), ("0", False), ("-1", False), ("false", False)]
)
def test_labels_in_a_header(text, meaning):
    for codec in (packed, fixed):
        assert codec.decode(record(TWO, [ID, ("sv-y", text.encode())])).y is meaning


def test_label_names_come_before_numbers():
    codec = Codec(positive="2", negative="1", format="float32")
    assert codec.decode(record(TWO, [ID, ("sv-y", b"1")])).y is False


@pytest.mark.parametrize(
    ("text", "ts"),
    [(b"1700000000000", 1700000000000), (b"1.5", 1.5), (b"2026-11-20T10:11:12Z", "2026-11-20T10:11:12Z")],
)
def test_times_in_a_header(text, ts):
    found = packed.decode(record(TWO, [ID, ("sv-ts", text)])).ts
    assert (found, type(found)) == (ts, type(ts))


BAD_PACKED = {
    "tombstone": (None, [ID], "null-value"),
    "too large": (b"\0" * (MAX_BYTES + 4), [ID], "too-large"),
    "half a number": (TWO[:-2], [ID], "bad-features"),
    "NaN": (struct.pack("<f", math.nan), [ID], "bad-feature"),
    "infinity": (struct.pack("<f", -math.inf), [ID], "bad-feature"),
    "feature too large": (struct.pack("<f", 1e16), [ID], "bad-feature"),
    "no id": (TWO, [], "missing-field"),
    "empty id": (TWO, [("sv-id", b"")], "bad-id"),
    "id not UTF-8": (TWO, [("sv-id", b"\xff")], "not-utf8"),
    "two ids": (TWO, [ID, ID], "duplicate-field"),
    "label": (TWO, [ID, ("sv-y", b"yes")], "bad-label"),
    "weight zero": (TWO, [ID, ("sv-w", b"0")], "bad-weight"),
    "weight text": (TWO, [ID, ("sv-w", b"heavy")], "bad-weight"),
    "weight NaN": (TWO, [ID, ("sv-w", b"NaN")], "bad-weight"),
    "weight of Python's": (TWO, [ID, ("sv-w", b"1_0")], "bad-weight"),
    "time boolean": (TWO, [ID, ("sv-ts", b"true")], "bad-ts"),
    "time NaN": (TWO, [ID, ("sv-ts", b"NaN")], "bad-ts"),
}


@pytest.mark.parametrize("name", BAD_PACKED)
def test_bad_packed_events_are_refused_with_a_reason(name):
    value, headers, expected = BAD_PACKED[name]
    assert reason(packed, value, headers) == expected


def test_configured_names_fix_the_number_of_packed_features():
    assert reason(fixed, TWO + TWO, [ID]) == "bad-features"


@given(
    st.binary(max_size=20),
    st.lists(st.tuples(st.sampled_from(["sv-id", "sv-y", "sv-w", "sv-ts"]), st.binary(max_size=8))),
)
def test_any_packed_bytes_are_decoded_or_refused(value, headers):
    try:
        event = packed.decode(record(value, headers))
    except BadRecord:
        return
    assert packed.features(value) == event.x


# --- Avro -------------------------------------------------------------------------------------------------------------

MAP = {"type": "map", "values": "double"}
OPTIONAL = ["null", "boolean", "string", "int"]
SCHEMA = {
    "type": "record",
    "name": "Event",
    "namespace": "com.example",
    "fields": [
        {"name": "id", "type": ["string", "long"]},
        {"name": "more", "type": ["null", "bytes"], "default": None},
        {"name": "x", "type": MAP, "doc": "numbers"},
        {"name": "y", "type": OPTIONAL, "default": None},
        {"name": "w", "type": ["null", "float"], "default": None},
        {"name": "ts", "type": ["null", {"type": "long", "logicalType": "timestamp-millis"}], "default": None},
    ],
}
LIST_SCHEMA = {
    "type": "record",
    "name": "Row",
    "fields": [{"name": "id", "type": "long"}, {"name": "x", "type": {"type": "array", "items": "float"}}],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("schemas")
    (path / "7.avsc").write_text(json.dumps(SCHEMA))
    (path / "258.avsc").write_text(json.dumps(LIST_SCHEMA))
    return path


@pytest.fixture(scope="module")
def avro(folder):
    return Codec(positive="spam", negative="ham", format="avro", schemas=folder)


def write(schema, id_, **fields):
    body = io.BytesIO()
    fastavro.schemaless_writer(body, schema, fields)
    return b"\0" + id_.to_bytes(4, "big") + body.getvalue()


GOOD = write(SCHEMA, 7, id="e1", x={"b": 1.5, "a": -2.0}, y="spam", w=2.0, ts=1_700_000_000_000, more=b"\xff")


def test_a_whole_avro_event(avro):
    event = avro.decode(record(GOOD))
    assert event[2:] == ({"b": 1.5, "a": -2.0}, True, 2.0, 1_700_000_000_000)
    assert (event.id, event.key) == ("e1", Codec().decode(record(b'{"id": "e1", "x": {}}')).key)
    assert list(avro.features(GOOD).items()) == [("b", 1.5), ("a", -2.0)]


def test_null_means_absent(avro):
    event = avro.decode(record(write(SCHEMA, 7, id=3, x={})))
    assert event == Event(id=3, key=3, x={}, y=None, w=1.0, ts=None)


def test_a_list_of_numbers_and_another_schema(folder, avro):
    value = write(LIST_SCHEMA, 258, id=3, x=[1.5, 2])
    assert avro.decode(record(value)).x == {"0": 1.5, "1": 2.0}
    named = Codec(["a", "b"], format="avro", schemas=folder)
    assert named.decode(record(value)).x == named.features(value) == {"a": 1.5, "b": 2.0}


BAD_AVRO = {
    "tombstone": (None, "null-value"),
    "too large": (GOOD + b"\0" * MAX_BYTES, "too-large"),
    "empty": (b"", "not-avro"),
    "no frame": (GOOD[:4], "not-avro"),
    "magic": (b"\1" + GOOD[1:], "not-avro"),
    "JSON": (b'{"id": 1, "x": {}}', "not-avro"),
    "schema": (GOOD[:4] + b"\x09" + GOOD[5:], "unknown-schema"),
    "no body": (GOOD[:5], "not-avro"),
    "cut": (GOOD[:-1], "not-avro"),
    "bytes behind": (GOOD + b"\0", "not-avro"),
    "branch": (GOOD[:5] + b"\x7e" + GOOD[6:], "not-avro"),
    "text not UTF-8": (GOOD.replace(b"e1", b"\xff\xff"), "not-avro"),
    "NaN": (write(SCHEMA, 7, id="e1", x={"a": math.nan}), "bad-feature"),
    "empty id": (write(SCHEMA, 7, id="", x={}), "bad-id"),
    "label": (write(SCHEMA, 7, id="e1", x={}, y="eggs"), "bad-label"),
    "weight infinite": (write(SCHEMA, 7, id="e1", x={}, w=math.inf), "bad-weight"),
}


@pytest.mark.parametrize("name", BAD_AVRO)
def test_bad_avro_events_are_refused_with_a_reason(avro, name):
    value, expected = BAD_AVRO[name]
    assert reason(avro, value) == expected


@given(
    st.binary(max_size=40).map(lambda body: GOOD[:5] + body)
    | st.binary(max_size=20).map(lambda body: b"\0\0\0\1\2" + body)
    | st.tuples(st.integers(0, len(GOOD)), st.integers(0, 4), st.binary(max_size=12)).map(
        lambda cut: GOOD[: cut[0]] + cut[2] + GOOD[cut[0] + cut[1] :]
    )
)
@settings(max_examples=300)
@example(GOOD[:5] + b"\xff" * 20)
@example(GOOD[:5] + b"\0" + b"\xfe" * 8 + b"\x01")  # a text of 2**60 bytes
@example(b"\0\0\0\1\2" + b"\2" + b"\xfe\xff\xff\xff\xff\xff\xff\xff\x7f")  # a list as long
@example(b"\0\0\0\1\2" + b"\2" + b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\2")  # of a negative length
def test_any_avro_bytes_are_decoded_or_refused(avro, value):
    try:
        event = avro.decode(record(value))
    except BadRecord:
        return
    assert avro.features(value) == event.x


# --- schemas ----------------------------------------------------------------------------------------------------------


def test_avro_needs_schemas(tmp_path):
    with pytest.raises(SchemaError, match="no schema file"):
        Codec(format="avro", schemas=tmp_path / "none")


def fields(**types):
    return [{"name": name, "type": type_} for name, type_ in types.items()]


def avsc(*fields):
    return {"type": "record", "name": "E", "fields": list(fields)}


NOTHING = {"type": "record", "name": "N", "fields": [{"name": "n", "type": "null"}]}
LOGICAL = {"type": "long", "logicalType": "timestamp-micros"}
M = {"type": "record", "name": "M", "fields": [{"name": "k", "type": "string"}]}


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        (M, {"k": "v"}),
        (["null", M], None),
        ({"type": "enum", "name": "C", "symbols": ["R"]}, "R"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}, b"\1"),
        ({"type": "fixed", "name": "F", "size": 3}, b"abc"),
        ({"type": "array", "items": M}, [{"k": "v"}] * 3),
        ({"type": "map", "values": {"type": "array", "items": "string"}}, {"a": ["b"]}),
        (LOGICAL, 10**15),
        ({"type": "string", "logicalType": "uuid"}, "no uuid"),
    ],
    ids=str,
)
def test_other_fields_of_any_type_are_ignored(tmp_path, type_, value):
    schema = avsc(*fields(id="string", more=type_, x=MAP))
    found = codec_of(tmp_path, schema).decode(record(write(plain_types(schema), 1, id="e", more=value, x={"a": 1.5})))
    assert (found.id, found.x) == ("e", {"a": 1.5})


def plain_types(node):
    """A schema without logical types, to write values as they are."""
    if isinstance(node, dict):
        return {key: plain_types(value) for key, value in node.items() if key != "logicalType"}
    return [plain_types(item) for item in node] if isinstance(node, list) else node


def codec_of(folder, schema):
    (folder / "1.avsc").write_text(json.dumps(schema))
    return Codec(format="avro", schemas=folder)


@pytest.mark.parametrize(
    ("type_", "x", "expected"),
    [
        ({"type": "map", "values": "int"}, {"a": 2}, {"a": 2}),
        ({"type": "map", "values": ["null", "double"]}, {"a": None, "b": 1.5}, {"b": 1.5}),
        ({"type": "array", "items": ["long", "float"]}, [2, 1.5], {"0": 2, "1": 1.5}),
        (["null", MAP], {"a": 1.5}, {"a": 1.5}),
        ({"type": "record", "name": "X", "fields": [
            {"name": "a", "type": "int"}, {"name": "b", "type": ["null", "double"]}
        ]}, {"a": 1, "b": None}, {"a": 1}),
    ],
    ids=str,
)  # fmt: skip
def test_features_are_numbers_of_every_kind_and_null_is_a_missing_one(tmp_path, type_, x, expected):
    schema = avsc(*fields(id="string", x=type_))
    codec, value = codec_of(tmp_path, schema), write(schema, 1, id="e", x=x)
    assert codec.decode(record(value)).x == codec.features(value) == expected


def test_raw_records_have_fields_of_every_type(tmp_path):
    inner = {"type": "record", "name": "A", "fields": fields(city=["null", "string"], zip="int")}
    schema = avsc(*fields(order="string", bought="boolean", shop=inner, note=["null", "string"], more="bytes"))
    (tmp_path / "1.avsc").write_text(json.dumps(schema))
    codec = Codec(format="avro", schemas=tmp_path, reading=Reading(True, "order", "bought"))
    value = write(schema, 1, order="e", bought=True, shop={"city": None, "zip": 7}, note="hm", more=b"b")
    event = codec.decode(record(value))
    x = {"shop.city": None, "shop.zip": 7, "note": "hm", "more": b"b"}
    assert (event.id, event.y, event.x) == ("e", True, x)
    assert codec.features(value) == x
    nested = avsc(*fields(id="string", x={"type": "map", "values": ["null", "string"]}))
    (tmp_path / "1.avsc").write_text(json.dumps(nested))
    codec = Codec(format="avro", schemas=tmp_path, reading=Reading(True))
    assert codec.decode(record(write(nested, 1, id="e", x={"a": None, "b": "c"}))).x == {"b": "c"}


def test_features_may_refer_to_a_type_of_another_field(tmp_path):
    features = {"type": "record", "name": "F", "namespace": "org", "fields": [{"name": "a", "type": "double"}]}
    schema = avsc(*fields(id="string", old=features, x="org.F"))
    value = write(schema, 1, id="e", old={"a": 0}, x={"a": 1.5})
    assert codec_of(tmp_path, schema).decode(record(value)).x == {"a": 1.5}


def test_an_enumeration_may_be_the_label(tmp_path):
    schema = avsc(*fields(id="string", x=MAP, y={"type": "enum", "name": "Y", "symbols": ["ham", "spam"]}))
    (tmp_path / "1.avsc").write_text(json.dumps(schema))
    codec = Codec(positive="spam", negative="ham", format="avro", schemas=tmp_path)
    assert codec.decode(record(write(schema, 1, id="e", x={}, y="spam"))).y is True


@pytest.mark.parametrize("local", ["", "local-"])
@pytest.mark.parametrize(("unit", "ts"), [("millis", 1_700_000_000_123), ("micros", 1_700_000_000_123_456)])
def test_times_of_every_unit_are_milliseconds(tmp_path, local, unit, ts):
    schema = avsc(*fields(id="string", x=MAP, ts=["null", {"type": "long", "logicalType": f"{local}timestamp-{unit}"}]))
    value = write(plain_types(schema), 1, id="e", x={}, ts=ts)
    assert codec_of(tmp_path, schema).decode(record(value)).ts == 1_700_000_000_123


BAD_SCHEMAS = {
    "not JSON": ("{", "not the schema"),
    "a list": ([], "not the schema"),
    "not a record": ("string", "not the schema"),
    "an enumeration": ({"type": "enum", "name": "e", "fields": []}, "must be of a record, got 'enum'"),
    "no id": (avsc(*fields(x=MAP)), "no field 'id'"),
    "no x": (avsc(*fields(id="long")), "no field 'x'"),
    "x not a map": (avsc(*fields(id="long", x="double")), "'x' must be a map, an array or a record of numbers"),
    "x of text": (avsc(*fields(id="long", x={"type": "map", "values": "string"})), "'x' must be a map, an array or"),
    "x of null": (avsc(*fields(id="long", x={"type": "array", "items": "null"})), "'x' must be a map, an array or"),
    "x null": (avsc(*fields(id="long", x=["null"])), "'x' must be a map, an array or"),
    "x of a union of unions": (avsc(*fields(id="long", x={"type": "map", "values": [["int"]]})), "'x' must be a map"),
    "endless, of size 0": (
        avsc(*fields(id="long", x=MAP, more={"type": "array", "items": {"type": "fixed", "name": "f", "size": 0}})),
        "a fixed of size 0",
    ),
    "endless": (avsc(*fields(id="long", x=MAP, more={"type": "array", "items": "null"})), "null does not"),
    "endless by name": (
        avsc(*fields(id="long", x=MAP, more=NOTHING, most={"type": "array", "items": "N"})),
        "take bytes",
    ),
    "unknown": (avsc(*fields(id="long", x=MAP, more="nothing")), "nothing"),
    "a union with a list": (avsc(*fields(id=["null", MAP], x=MAP)), "'id' must be a primitive"),
    "a decimal weight": (
        avsc(*fields(id="long", x=MAP, w={"type": "bytes", "logicalType": "decimal", "precision": 9})),
        "'w' must be",
    ),
    "a union in a union": (avsc(*fields(id=["null", ["long"]], x=MAP)), "'id' must be a primitive"),
    "an empty union": (avsc(*fields(id=[], x=MAP)), "'id' must be a primitive"),
}


@pytest.mark.parametrize("name", BAD_SCHEMAS)
def test_bad_schemas_are_refused_with_their_file(tmp_path, name):
    schema, message = BAD_SCHEMAS[name]
    (tmp_path / "1.avsc").write_text(schema if isinstance(schema, str) else json.dumps(schema))
    with pytest.raises(SchemaError, match=message) as caught:
        Codec(format="avro", schemas=tmp_path)
    assert str(tmp_path / "1.avsc") in str(caught.value)


def test_schema_files_are_named_by_ids(tmp_path):
    (tmp_path / "events.avsc").write_text(json.dumps(SCHEMA))
    with pytest.raises(SchemaError, match=r"named by its id, as in 17\.avsc"):
        Codec(format="avro", schemas=tmp_path)


def test_a_missing_fastavro_is_named(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "fastavro", None)
    with pytest.raises(LibraryMissing, match=r"pip install 'streamsvm\[avro\]'"):
        Codec(format="avro", schemas=tmp_path)
