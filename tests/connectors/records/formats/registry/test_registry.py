"""Events with schemas of a registry: Avro, Protobuf and JSON Schema, and a registry that is away or refuses."""

import io
import json

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from streamsvm.connectors.logs.transport import AccessDenied, Record, Unavailable
from streamsvm.connectors.records.codec import Codec
from streamsvm.connectors.records.formats.base import BadRecord
from streamsvm.connectors.records.formats.registry import format as format_module
from streamsvm.connectors.records.formats.registry import protobuf as protobuf_module
from streamsvm.connectors.records.formats.registry.client import Place
from streamsvm.connectors.records.formats.registry.format import RegistryFormat

FIELDS = [
    {"name": "id", "type": "string"},
    {"name": "x", "type": {"type": "map", "values": "double"}},
    {"name": "y", "type": ["null", "boolean"]},
    {"name": "ts", "type": ["null", {"type": "long", "logicalType": "timestamp-millis"}]},
]
EVENT = {"type": "record", "name": "Event", "fields": FIELDS}
WRITTEN = {"id": "e1", "x": {"b": 1.5, "a": -2.0}, "y": True, "ts": None}


def no_waiting(reason):
    raise Unavailable(reason)


def codec_of(registry, wait=no_waiting, **place):
    return Codec(format="registry", registry=Place(registry.url, **{"seconds": 2.0, **place}), wait=wait)


def framed(id_, body):
    return b"\0" + id_.to_bytes(4, "big") + body


def record(value):
    return Record("events", 0, 0, 0, None, value, ())


def avro(schema, fields, named=None):
    fastavro = pytest.importorskip("fastavro")
    body = io.BytesIO()
    fastavro.schemaless_writer(body, fastavro.parse_schema(schema, {} if named is None else named), fields)
    return body.getvalue()


def refusal(codec, value):
    with pytest.raises(BadRecord) as found:
        codec.decode(record(value))
    return found.value


# --- Avro -------------------------------------------------------------------------------------------------------------


def test_an_avro_event(registry):
    value = framed(registry.register("events-value", json.dumps(EVENT)), avro(EVENT, WRITTEN))
    codec = codec_of(registry)
    event = codec.decode(record(value))
    assert (event.id, event.x, event.y, event.ts) == ("e1", {"b": 1.5, "a": -2.0}, True, None)
    assert codec.features(value) == event.x


def test_a_schema_is_asked_for_once(registry):
    value = framed(registry.register("events-value", json.dumps(EVENT)), avro(EVENT, WRITTEN))
    codec = codec_of(registry)
    for _ in range(3):
        codec.decode(record(value))
    assert registry.asked == ["/schemas/ids/1"]


def test_the_schema_changes_in_the_midst_of_the_stream(registry):
    """A field with features is a record by now, and one is new that means nothing to us."""
    features = {"type": "record", "name": "Features", "fields": [{"name": n, "type": "float"} for n in "ab"]}
    kind = {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}
    new = {**EVENT, "fields": [FIELDS[0], {"name": "x", "type": features}, {"name": "kind", "type": kind}]}
    old_id, new_id = (registry.register("events-value", json.dumps(schema)) for schema in (EVENT, new))
    codec = codec_of(registry)
    values = [
        framed(old_id, avro(EVENT, WRITTEN)),
        framed(new_id, avro(new, {"id": "e", "x": {"a": 1, "b": 2}, "kind": "B"})),
    ]
    assert [codec.decode(record(value)).x for value in values * 2] == [WRITTEN["x"], {"a": 1.0, "b": 2.0}] * 2


def test_times_in_microseconds_and_features_that_are_null(registry):
    micros = {"type": "long", "logicalType": "timestamp-micros"}
    values = {"type": "map", "values": ["null", "int"]}
    schema = {**EVENT, "fields": [FIELDS[0], {"name": "x", "type": values}, {"name": "ts", "type": ["null", micros]}]}
    fields = {"id": "e", "x": {"a": 1, "b": None}, "ts": 1_700_000_000_123_456}
    plain = json.loads(json.dumps(schema).replace("logicalType", "other"))
    value = framed(registry.register("events-value", json.dumps(schema)), avro(plain, fields))
    codec = codec_of(registry)
    event = codec.decode(record(value))
    assert (event.x, event.ts) == ({"a": 1}, 1_700_000_000_123)
    assert codec.features(value) == event.x


def test_a_schema_with_references(registry):
    number = {"type": "record", "name": "org.Features", "fields": [{"name": "a", "type": "double"}]}
    registry.register("org/features", json.dumps(number))
    event = {**EVENT, "fields": [FIELDS[0], {"name": "x", "type": "org.Features"}]}
    id_ = registry.register("events-value", json.dumps(event), references=[("org.Features", "org/features", 1)])
    named = {}
    avro(number, {"a": 1.0}, named)
    value = framed(id_, avro(event, {"id": "e", "x": {"a": 3.5}}, named))
    assert codec_of(registry).decode(record(value)).x == {"a": 3.5}
    assert registry.asked[-1] == "/subjects/org%2Ffeatures/versions/1"


def test_references_in_a_circle_end(registry):
    for name, other in ("ab", "ba"):
        schema = {"type": "record", "name": name, "fields": [{"name": "f", "type": other}]}
        registry.register(name, json.dumps(schema), references=[(other, other, 1)])
    assert refusal(codec_of(registry), framed(1, b"")).reason == "unusable-schema"


# --- JSON Schema ------------------------------------------------------------------------------------------------------


def test_a_json_event(registry):
    id_ = registry.register("events-value", '{"type": "object"}', "JSON")
    codec = codec_of(registry)
    value = framed(id_, b'{"id": 7, "x": {"a": 1.5}, "y": 0, "other": []}')
    assert (codec.decode(record(value)).id, codec.features(value)) == (7, {"a": 1.5})
    assert refusal(codec, framed(id_, b'{"id": 7')).reason == "not-json"


# --- Protobuf ---------------------------------------------------------------------------------------------------------


def proto(name, **messages):
    """A file of Protobuf 3: each message's fields as (name, type, label); a label is "", "optional" or "repeated"."""
    from google.protobuf import descriptor_pb2

    file = descriptor_pb2.FileDescriptorProto(name=name, package="org", syntax="proto3")
    for message_name, fields in messages.items():
        message = file.message_type.add(name=message_name)
        for number, (field_name, kind, label) in enumerate(fields, 1):
            field = message.field.add(name=field_name, number=number, label=3 if label == "repeated" else 1)
            if kind[0].isupper() or kind.startswith("."):
                field.type, field.type_name = field.TYPE_MESSAGE, kind if kind.startswith(".") else f".org.{kind}"
            else:
                field.type = getattr(field, f"TYPE_{kind.upper()}")
            if label == "optional":
                field.proto3_optional = True
                field.oneof_index = len(message.oneof_decl)
                message.oneof_decl.add(name=f"_{field_name}")
    return file


def with_map(file):
    """The first message's x as ``map<string, double>``."""
    message = file.message_type[0]
    entry = message.nested_type.add(name="XEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=9, label=1)
    entry.field.add(name="value", number=2, type=1, label=1)
    field = next(field for field in message.field if field.name == "x")
    field.label, field.type, field.type_name = 3, 11, f".org.{message.name}.XEntry"
    return file


def message_of(*files, name="org.Event", **fields):
    from google.protobuf import descriptor_pool, json_format, message_factory

    pool = descriptor_pool.DescriptorPool()
    for file in files:
        pool.AddSerializedFile(file.SerializeToString())
    message = message_factory.GetMessageClass(pool.FindMessageTypeByName(name))()
    return json_format.ParseDict(fields, message).SerializeToString()


COMMON = [("id", "string", ""), ("x", "double", "repeated"), ("y", "bool", "optional"), ("w", "double", "")]


@pytest.fixture
def protobuf():
    return pytest.importorskip("google.protobuf")


@pytest.mark.usefixtures("protobuf")
def test_a_protobuf_event(registry):
    file = with_map(proto("event.proto", Event=COMMON))
    id_ = registry.register("events-value", file, "PROTOBUF")
    codec = codec_of(registry)
    value = framed(id_, b"\0" + message_of(file, id="e1", x={"b": 1.5, "a": -2.0}, y=False, w=2.0))
    event = codec.decode(record(value))
    assert (event.id, event.x, event.y, event.w) == ("e1", {"b": 1.5, "a": -2.0}, False, 2.0)
    assert codec.features(value) == event.x
    event = codec.decode(record(framed(id_, b"\0" + message_of(file, id="e2"))))
    assert (event.x, event.y, event.w) == ({}, None, 1.0)


@pytest.mark.usefixtures("protobuf")
def test_the_header_names_a_message_inside_of_another(registry):
    file = proto("event.proto", Other=[("id", "int64", "")], Event=COMMON)
    inner = proto("inner.proto", Event=[("id", "int64", ""), ("x", "float", "repeated")]).message_type[0]
    file.message_type[1].nested_type.append(inner)
    id_ = registry.register("events-value", file, "PROTOBUF")
    body = message_of(file, name="org.Event.Event", id=7, x=[1.5, 2.0])
    event = codec_of(registry).decode(record(framed(id_, bytes([4, 2, 0]) + body)))  # zigzag: two indexes, 1 and 0
    assert (event.id, event.x) == (7, {"0": 1.5, "1": 2.0})


@pytest.mark.usefixtures("protobuf")
def test_a_protobuf_schema_with_imports(registry):
    from google.protobuf import timestamp_pb2, wrappers_pb2

    features = proto("features.proto", Features=[("a", "double", ""), ("b", "double", "optional")])
    known = [("ts", ".google.protobuf.Timestamp", ""), ("y", ".google.protobuf.BoolValue", "")]
    event = proto("event.proto", Event=[("id", "int64", ""), ("x", "Features", ""), *known])
    stamps = [type(event).FromString(each.DESCRIPTOR.serialized_pb) for each in (timestamp_pb2, wrappers_pb2)]
    event.dependency.extend(["features.proto", *(each.name for each in stamps)])
    registry.register("features", features, "PROTOBUF")
    id_ = registry.register("events", event, "PROTOBUF", references=[("features.proto", "features", 1)])
    for y in (False, True):
        body = message_of(features, *stamps, event, id=7, x={"a": 1.5}, ts="2026-01-02T03:04:05Z", y=y)
        decoded = codec_of(registry).decode(record(framed(id_, b"\0" + body)))
        assert (decoded.x, decoded.ts, decoded.y) == ({"a": 1.5}, "2026-01-02T03:04:05Z", y)


FEATURES = """syntax = "proto3"; package org;
message Features { double a = 1; optional double b = 2; }"""
EVENTS = """syntax = "proto3"; package org;
import "features.proto"; import "google/protobuf/timestamp.proto";
message Event { int64 id = 1; Features x = 2; optional bool y = 3; google.protobuf.Timestamp ts = 4; }"""


@pytest.mark.usefixtures("protobuf")
def test_a_registry_that_sends_protobuf_as_text(registry):
    """Apicurio's does: asked for a descriptor, it sends the bytes as if they were text."""
    pytest.importorskip("grpc_tools")
    from google.protobuf import timestamp_pb2

    registry.register("features", FEATURES, "PROTOBUF")
    id_ = registry.register("events", EVENTS, "PROTOBUF", references=[("features.proto", "features", 1)])
    features = proto("features.proto", Features=[("a", "double", ""), ("b", "double", "optional")])
    event = proto(
        "event.proto",
        Event=[
            ("id", "int64", ""),
            ("x", "Features", ""),
            ("y", "bool", "optional"),
            ("ts", ".google.protobuf.Timestamp", ""),
        ],
    )
    event.dependency.extend(["features.proto", "google/protobuf/timestamp.proto"])
    stamp = type(event).FromString(timestamp_pb2.DESCRIPTOR.serialized_pb)
    body = message_of(features, stamp, event, id=7, x={"a": 1.5}, y=True, ts="2026-01-02T03:04:05Z")
    decoded = codec_of(registry).decode(record(framed(id_, b"\0" + body)))
    assert (decoded.id, decoded.x, decoded.y, decoded.ts) == (7, {"a": 1.5}, True, "2026-01-02T03:04:05Z")


@pytest.mark.usefixtures("protobuf")
@pytest.mark.parametrize(
    ("text", "detail"),
    [
        ('syntax = "proto3"; message Event { nothing id = 1; }', '"nothing" is not defined'),
        ('syntax = "proto3"; import "/etc/passwd";', "/etc/passwd: File not found"),
        ('syntax = "proto3"; import "../x.proto";', 'Import "../x.proto" was not found'),
        ("message Event {", "Reached end of input"),
    ],
)
def test_protobuf_text_that_is_refused(registry, text, detail):
    pytest.importorskip("grpc_tools")
    error = refusal(codec_of(registry), framed(registry.register("events", text, "PROTOBUF"), b"\0"))
    assert (error.reason, detail in error.detail) == ("unusable-schema", True), error


@pytest.mark.usefixtures("protobuf")
def test_protobuf_text_without_a_compiler(registry, monkeypatch):
    monkeypatch.setattr(protobuf_module, "find_spec", lambda _: None)
    value = framed(registry.register("features", FEATURES, "PROTOBUF"), b"\0")
    with pytest.raises(ImportError, match=r"needs grpcio-tools: pip install 'streamsvm\[protobuf\]'"):
        codec_of(registry).decode(record(value))


@pytest.mark.usefixtures("protobuf")
@pytest.mark.parametrize(
    ("file", "body", "reason", "detail"),
    [
        (proto, b"\0\xff", "not-protobuf", "no message of the schema"),
        (proto, b"", "not-protobuf", "cut off"),
        (proto, b"\x80" * 20, "not-protobuf", "cut off"),
        (proto, b"\x02\x0a", "not-protobuf", "no message [5]"),
        (proto, b"\x01", "not-protobuf", "-1 indexes"),
        (proto, b"\xfe\xff\x03", "not-protobuf", "indexes"),
        ("y without presence", b"\0", "unusable-schema", "must be `optional`"),
        ("import", b"\0", "unusable-schema", "imports 'x.proto', to which it has no reference"),
        ("text", b"\0", "unusable-schema", "schema 1 cannot be used"),
    ],
)
def test_protobuf_records_that_are_refused(registry, file, body, reason, detail):
    schema = proto("event.proto", Event=COMMON)
    if file == "y without presence":
        schema = proto("event.proto", Event=[*COMMON[:2], ("y", "bool", "")])
    elif file == "import":
        schema.dependency.append("x.proto")
    elif file == "text":
        schema.message_type[0].field[0].type_name = ".org.Missing"
        schema.message_type[0].field[0].type = 11
    error = refusal(codec_of(registry), framed(registry.register("events", schema, "PROTOBUF"), body))
    assert (error.reason, detail in error.detail) == (reason, True), error


# --- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [b"", b"\0\0\0\0", b'{"id": 1}', b"\1" + bytes(16)])
def test_a_record_without_the_header_is_refused(registry, value):
    assert refusal(codec_of(registry), value).reason == "no-schema"
    assert registry.asked == []


@pytest.mark.parametrize(
    ("schema", "kind", "detail"),
    [
        ("no JSON", "AVRO", "schema 1 cannot be used: JSONDecodeError"),
        ('"string"', "AVRO", "must be of a record"),
        ('{"type": "record", "name": "E", "fields": [{"name": "x", "type": "nothing"}]}', "AVRO", "nothing"),
        (json.dumps({**EVENT, "fields": [{"name": "n", "type": {"type": "array", "items": "null"}}]}), "AVRO", "null"),
        ("{}", "XML", "it is of the type 'XML', not AVRO, PROTOBUF or JSON"),
    ],
)
def test_a_schema_that_cannot_be_used_is_asked_for_once(registry, schema, kind, detail):
    codec = codec_of(registry)
    value = framed(registry.register("events", schema, kind), b"")
    for _ in range(2):
        error = refusal(codec, value)
        assert (error.reason, detail in error.detail) == ("unusable-schema", True), error
    assert len(registry.asked) == 1


def test_an_unknown_id_is_asked_for_again_after_a_while(registry):
    """The registry may hear of a schema a little later than we of its first event."""
    now = [0.0]
    format_ = RegistryFormat(Place(registry.url), no_waiting, lambda: now[0])
    value = framed(1, avro(EVENT, WRITTEN))
    for time in (0.0, 9.9):
        now[0] = time
        with pytest.raises(BadRecord, match=r"unknown-schema: schema 1: the schema registry has no such schema"):
            format_.read(value, (), dict)
    assert len(registry.asked) == 1
    registry.register("events", json.dumps(EVENT))
    now[0] = 10.1
    assert format_.read(value, (), dict)["id"] == "e1"


def test_a_missing_reference_is_refused(registry):
    id_ = registry.register("events", json.dumps(EVENT), references=[("a", "nowhere", 1)])
    assert "no such subject" in refusal(codec_of(registry), framed(id_, b"")).detail


def test_the_number_of_schemas_in_memory_is_bounded(registry, monkeypatch):
    monkeypatch.setattr(format_module, "_MAX_SCHEMAS", 2)
    for _ in range(3):
        registry.register("events", "{}", "JSON")
    codec = codec_of(registry)
    for id_ in (1, 2, 1, 3, 1, 2):
        codec.decode(record(framed(id_, b'{"id": 1, "x": []}')))
    assert registry.asked == [f"/schemas/ids/{id_}" for id_ in (1, 2, 3, 2)]


@hypothesis_settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(1, 4), st.binary(max_size=60))
def test_any_bytes_are_decoded_or_refused(registry, id_, body):
    if not registry.schemas:
        pytest.importorskip("google.protobuf")
        registry.register("a", json.dumps(EVENT))
        registry.register("b", with_map(proto("event.proto", Event=COMMON)), "PROTOBUF")
        registry.register("c", "{}", "JSON")
    codec = codec_of(registry)
    value = framed(id_, body)
    try:
        event = codec.decode(record(value))
    except BadRecord:
        return
    assert codec.features(value) == event.x


# --- a registry that is away, or refuses ------------------------------------------------------------------------------


def test_while_the_registry_is_away_we_wait(registry, caplog):
    id_ = registry.register("events", json.dumps(EVENT))
    registry.failing = [500, 503, 429]
    reasons = []
    codec = codec_of(registry, reasons.append)
    assert codec.decode(record(framed(id_, avro(EVENT, WRITTEN)))).id == "e1"
    assert [
        f"answers {code} to /schemas/ids/1" in reason for code, reason in zip((500, 503, 429), reasons, strict=True)
    ]
    assert "Error in the backend" in caplog.text


@pytest.mark.parametrize("part", ["schema", "reference"])
def test_a_schema_for_which_the_registry_fails_is_a_dead_letter(registry, part):
    """It would stop the partition for good; an event with another schema goes on."""
    now = [0.0]
    features = registry.register("features", json.dumps(EVENT))
    id_ = registry.register("events", json.dumps(EVENT), references=[("a", "features", 1)])
    registry.broken = {id_ if part == "schema" else features}
    format_ = RegistryFormat(Place(registry.url), lambda reason: None, lambda: now[0])
    value = framed(id_, avro(EVENT, WRITTEN))
    for time, n_asked in ((0.0, None), (9.9, 0), (10.1, 4)):
        now[0], registry.asked = time, []
        with pytest.raises(BadRecord, match=r"unknown-schema: schema 2: .* answers 500 .*it answers for another"):
            format_.read(value, (), dict)
        assert n_asked is None or len(registry.asked) <= n_asked
    registry.broken, now[0] = set(), 30.0
    assert format_.read(value, (), dict)["id"] == "e1"


def test_no_event_becomes_a_dead_letter_because_of_an_outage(registry):
    id_ = registry.register("events", json.dumps(EVENT))
    registry.failing = [503] * 50
    assert codec_of(registry, lambda reason: None).decode(record(framed(id_, avro(EVENT, WRITTEN)))).id == "e1"
    assert registry.failing == []


def test_a_registry_that_does_not_answer_is_an_outage(registry):
    registry.close()
    with pytest.raises(Unavailable, match=r"the schema registry at http://127\.0\.0\.1:.* gives no valid answer"):
        codec_of(registry).decode(record(framed(1, b"")))


def test_another_server_at_the_address_is_an_outage(registry):
    """Nothing is refused because of a wrong address: its 404 is not the registry's."""
    place = Place(f"{registry.url}/elsewhere")
    with pytest.raises(Unavailable, match=r"answers 404 to /schemas/ids/1: .*: check schema\.registry"):
        Codec(format="registry", registry=place, wait=no_waiting).decode(record(framed(1, b"")))


def test_a_redirection_is_not_followed(registry):
    """It could lead to another server, which would get the password."""
    registry.failing = [302]
    with pytest.raises(Unavailable, match="answers 302"):
        codec_of(registry).decode(record(framed(1, b"")))


def test_basic_authentication(registry):
    id_ = registry.register("events", json.dumps(EVENT))
    registry.login = "me:secret"
    value = framed(id_, avro(EVENT, WRITTEN))
    with pytest.raises(AccessDenied, match=r"answers 401 .*: check schema\.user and schema\.password") as found:
        codec_of(registry, user="me", password="wrong").decode(record(value))  # noqa: S106 - of the server above
    assert "wrong" not in str(found.value)
    assert codec_of(registry, user="me", password="secret").decode(record(value)).id == "e1"  # noqa: S106


@pytest.mark.parametrize(
    ("module", "kind", "extra"), [("fastavro", "AVRO", "avro"), ("google.protobuf", "PROTOBUF", "protobuf")]
)
def test_a_missing_library_is_named(registry, monkeypatch, module, kind, extra):
    monkeypatch.setitem(__import__("sys").modules, module, None)
    registry.schemas[1] = "AVRO" if kind == "AVRO" else "JSON", json.dumps(EVENT), []
    registry.schemas[1] = (kind, json.dumps(EVENT), []) if kind == "AVRO" else (kind, type("F", (), {"name": "f"}), [])
    with pytest.raises(ImportError, match=rf"pip install 'streamsvm\[{extra}\]'"):
        codec_of(registry).decode(record(framed(1, b"")))
