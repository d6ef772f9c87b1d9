"""The section [schema]: where the schemas of events are, for log.format = "registry"."""

from dataclasses import dataclass, field

from ..records.formats.registry.client import Place
from . import checks
from .checks import key


@dataclass(frozen=True)
class SchemaSettings:
    """The registry of the events' schemas, for ``log.format = "registry"``.

    Parameters
    ----------
    registry
        Address of the registry, such as ``"https://registry.example.org:8081"``.
    user, password
        User and password for basic authentication.  Empty: the trainer sends neither.  The environment may have the
        password, as ``STREAMSVM_SCHEMA_PASSWORD``.
    seconds
        Seconds that the trainer waits for an answer of the registry, before it asks again.
    """

    registry: str = key("", checks.registry_url)
    user: str = ""
    password: str = field(default="", repr=False)
    seconds: float = key(10.0, checks.seconds)

    @property
    def place(self) -> Place:
        """The registry, for a client."""
        return Place(self.registry, self.user, self.password, self.seconds)
