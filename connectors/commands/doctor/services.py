"""What the doctor says about the services beside the log: the schema registry, and the object store of the state."""

import secrets
import time

from ...logs.transport import AccessDenied, OptionRefused, TopicMismatch, Unavailable
from ...records.formats.registry.client import Client, Unknown
from ...runtime.findings import Finding, Findings
from ...runtime.libraries import LibraryMissing
from ...settings.sections import Settings
from ...trainer.state.remote.objects import ObjectPlace, open_objects

_ANY_ID = 1  # of a schema: an answer that there is none is an answer


def check_registry(settings: Settings) -> Findings:
    """Ask the schema registry as the trainer does."""
    place = settings.schema.place
    if not place.url:
        return
    started = time.perf_counter()
    try:
        Client(place).by_id(_ANY_ID)
    except Unknown:
        pass
    except AccessDenied as error:
        yield Finding.problem(str(error), "check schema.user and schema.password, and the rights to read schemas")
        return
    except Unavailable as error:
        yield Finding.problem(str(error), "check schema.registry, and that the registry runs")
        return
    yield Finding.ok(f"{place.url} answers after {time.perf_counter() - started:.3f} seconds")


def check_objects(settings: Settings) -> Findings:
    """Write an object as the trainer does, read it, and remove it."""
    url = settings.state.url
    if settings.state.store != "objects":
        return
    started = time.perf_counter()
    try:
        place = ObjectPlace(open_objects(url), f"doctor-{secrets.token_hex(8)}", repr(url))
    except (LibraryMissing, OptionRefused) as error:
        yield Finding.problem(f"state.url = {url!r}: {error}", "correct state.url, or install what is missing")
        return
    try:
        _use(place)
    except (AccessDenied, OptionRefused, TopicMismatch, Unavailable) as error:
        yield Finding.problem(str(error), "the trainer must list, read, create and delete objects there")
        return
    yield Finding.ok(f"{url} took an object and gave it back in {time.perf_counter() - started:.3f} seconds")


def _use(place: ObjectPlace) -> None:
    """Do what the trainer does with objects."""
    try:
        place.append(b"doctor", b"")
        place.flush()
        list(place.records(0))
    finally:
        place.trim(place.next + 1)  # also an object whose writing has failed afterwards
