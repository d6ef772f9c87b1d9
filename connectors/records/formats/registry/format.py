"""Events framed by the serialisers of a schema registry: a zero byte, the schema's id in 4 bytes, the record.

A schema never changes, so the format asks for each id once.  While the registry does not answer, it waits, as for a
broker.  An id that the registry does not know makes a dead letter; it is asked for again after a while, because an
event may be faster than its schema.  So does an id for which the registry fails again and again, although it answers
for another one.
"""

import logging
import time
from collections.abc import Callable
from typing import Any

from streamsvm.core.newest import Newest

from ....logs.transport import AccessDenied, Headers, Unavailable
from ....runtime.libraries import LibraryMissing
from ....runtime.outage import Outage
from ....runtime.process import LOOK_SECONDS
from ..avro import FRAME_BYTES, MAGIC
from ..base import BadRecord, Built, Fields, show
from ..json import read_json
from . import avro, protobuf
from .client import Client, Place, Unknown

logger = logging.getLogger(__name__)

_MAX_SCHEMAS = 1000  # that are remembered
_AGAIN_SECONDS = 10.0  # until an unknown id is asked for again
_TRIES = 10  # to get a schema, before the registry is asked for another one

Reader = Callable[[bytes, Callable[[Fields], Any]], Any]


class RegistryFormat:
    """Events with schemas of a registry; see the module.

    Parameters
    ----------
    place
        The registry.
    wait
        Called with the reason after each attempt that failed; it may raise `Unavailable` to give up.
    clock
        Seconds of a clock that never goes back.
    is_flat
        Whether all fields of a record are of use, not those of an event only.
    """

    def __init__(
        self,
        place: Place,
        wait: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
        *,
        is_flat: bool = False,
    ) -> None:
        self._is_flat = is_flat
        self._client = Client(place)
        self._wait = wait
        self._clock = clock
        self._readers: Newest[int, Reader] = Newest(_MAX_SCHEMAS)
        self._refused: Newest[int, tuple[BadRecord, float]] = Newest(_MAX_SCHEMAS)  # and until when
        self._outage = Outage(logger, "the schema registry answers again")

    def read(self, value: bytes, headers: Headers, build: Callable[[Fields], Built]) -> Built:
        """What `build` makes of the record's fields; headers are ignored.

        Raises
        ------
        BadRecord
            If the record, or its schema, cannot be read.
        AccessDenied
            If the registry refuses us.
        LibraryMissing
            If the library that the schema needs is not installed.
        """
        if len(value) < FRAME_BYTES or value[0] != MAGIC:
            detail = f"the record must begin with a zero byte and a schema's id in 4 bytes, got {value[:5]!r}"
            raise BadRecord("no-schema", detail)
        reader = self._reader(int.from_bytes(value[1:FRAME_BYTES], "big"))
        built: Built = reader(value[FRAME_BYTES:], build)
        return built

    def features(self, value: bytes) -> Any:
        """The field x."""
        return self.read(value, (), lambda fields: fields["x"])

    def _reader(self, id_: int) -> Reader:
        reader = self._readers.get(id_)
        if reader is not None:
            self._readers.move_to_end(id_)
            return reader
        refusal, until = self._refused.get(id_, (None, 0.0))
        if refusal is not None and self._clock() < until:
            raise refusal.with_traceback(None)
        try:
            reader = self._ask(id_)
        except BadRecord as error:
            again = _AGAIN_SECONDS if error.reason == "unknown-schema" else float("inf")
            self._refused[id_] = error, self._clock() + again
            raise
        self._readers[id_] = reader
        return reader

    def _ask(self, id_: int) -> Reader:
        n_failures = _TRIES if id_ in self._refused else 0
        while True:
            try:
                reader = self._make(id_)
                self._outage.ends()
                return reader
            except Unavailable as error:
                n_failures += 1
                if n_failures >= _TRIES and not self._client.answers():
                    n_failures = 0
                elif n_failures > _TRIES:  # it has answered before and after the last failure
                    self._outage.ends()
                    text = f"schema {id_}: {error}; but it answers for another schema"
                    raise BadRecord("unknown-schema", text) from None
                self._outage.goes_on(error)
                self._wait(str(error))
            except Unknown as error:
                raise BadRecord("unknown-schema", f"schema {id_}: {error}") from None
            except (AccessDenied, LibraryMissing):
                raise
            except Exception as error:  # libraries raise their own errors for schemas that they do not understand
                text = f"schema {id_} cannot be used: {type(error).__name__}: {error}"
                raise BadRecord("unusable-schema", text) from None

    def _make(self, id_: int) -> Reader:
        schema = self._client.by_id(id_)
        match schema.kind:
            case "JSON":
                return read_json
            case "AVRO":
                read = avro.make_reader(schema, self._client)
            case "PROTOBUF" if self._is_flat:
                raise ValueError(
                    "of Protobuf, only the fields of an event are read; leave out features.id, label, time"
                )
            case "PROTOBUF":
                read = protobuf.make_reader(id_, schema, self._client)
            case kind:
                raise ValueError(f"it is of the type {show(kind)}, not AVRO, PROTOBUF or JSON")
        return lambda body, build: build(read(body))


def pause(reason: str) -> None:
    """Wait for a moment, for a process that can only wait."""
    time.sleep(LOOK_SECONDS)
