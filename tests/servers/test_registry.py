"""Apicurio Registry: events of Protobuf, whose schemas it sends as text."""

import json
import struct
import urllib.request

import pytest

from streamsvm.connectors.logs.transport import Record, Unavailable
from streamsvm.connectors.records.codec import Codec
from streamsvm.connectors.records.formats.base import BadRecord
from streamsvm.connectors.records.formats.registry.client import Client, Place

pytestmark = pytest.mark.long
FEATURES = 'syntax = "proto3"; package org; message Features { double a = 1; optional double b = 2; }'
EVENT = """syntax = "proto3"; package org;
import "features.proto"; import "google/protobuf/timestamp.proto";
message Event { int64 id = 1; Features x = 2; optional bool y = 3; google.protobuf.Timestamp ts = 4; }"""

PLAIN = (
    '{"$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "properties": {"x": {"type": "object"}}}'
)


def no_waiting(reason):
    raise Unavailable(reason)


@pytest.fixture
def place(apicurio):
    return Place(f"{apicurio.url}/apis/ccompat/v7")


def register(place, subject, **body):
    where, kind = f"{place.url}/subjects/{subject}/versions", {"Content-Type": "application/json"}
    request = urllib.request.Request(where, json.dumps(body).encode(), kind)  # noqa: S310 - http
    with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310 - http
        return json.load(answer)["id"]


def decode(place, id_, body):
    codec = Codec(format="registry", registry=place, wait=no_waiting)
    return codec.decode(Record("events", 0, 0, 0, None, b"\0" + id_.to_bytes(4, "big") + body, ()))


def test_protobuf(place):
    pytest.importorskip("grpc_tools")
    register(place, "features", schemaType="PROTOBUF", schema=FEATURES)
    reference = {"name": "features.proto", "subject": "features", "version": 1}
    id_ = register(place, "events", schemaType="PROTOBUF", schema=EVENT, references=[reference])
    x = b"\x09" + struct.pack("<d", 1.5)
    event = decode(place, id_, b"\0" + b"\x08\x07" + b"\x12" + bytes([len(x)]) + x + b"\x18\x01")
    assert (event.id, event.x, event.y) == (7, {"a": 1.5}, True)


def test_json_and_an_unknown_id(place):
    id_ = register(place, "plain", schemaType="JSON", schema=PLAIN)
    assert decode(place, id_, b'{"id": 1, "x": {"a": 1.5}}').x == {"a": 1.5}
    with pytest.raises(BadRecord, match="unknown-schema"):
        decode(place, 10**6, b"")
    assert Client(place).answers()
