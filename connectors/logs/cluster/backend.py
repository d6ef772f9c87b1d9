"""A Kafka cluster as a `backend.Backend`, as far as it does not depend on the client."""

from abc import abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager, closing
from dataclasses import replace
from typing import Any, ClassVar

from ...runtime.findings import Finding, Findings
from ...runtime.text import plural
from ..backend import Backend
from ..transport import AccessDenied, Unavailable
from .log import Client, ClusterLog
from .options import KafkaOptions, servers
from .outputs import Outputs
from .reader import Reader
from .security import identity, insecurities


class ClusterBackend(Backend):
    """The topics of a Kafka cluster; a subclass names its client.

    Parameters
    ----------
    options
        The cluster, and this process's place in its groups.
    """

    name = "Kafka"
    has_groups = True
    is_local = False
    makes_topics = False
    _parts: ClassVar[tuple[type[Reader], type[Outputs], type[Any]]]  # of a `log.Client`

    @abstractmethod
    def _members(self, group: str) -> tuple[str, int]:
        """The state of a group, as the broker calls it, and the number of its members."""

    def __init__(self, options: KafkaOptions) -> None:
        self._options, self._given = options, options.client

    def open(
        self, group: str, stop: Callable[[], bool], tell: Callable[[str], None]
    ) -> AbstractContextManager[ClusterLog]:
        client = Client(*self._parts, self.describe)
        return closing(ClusterLog.connect(replace(self._options, group=group), client, stop, tell))

    def group_state(self, group: str) -> str:
        state, n_members = self._members(group)
        return "and was never used" if state == "Dead" else f"{state.lower()}, {plural(n_members, 'member')}"

    def connected(self, seconds: float) -> Findings:
        who, protocol = identity(self._given)
        where = ",".join(servers(self._given))
        yield Finding.ok(f"connected to {where} {who}, {protocol}, in {1000 * seconds:,.0f} ms")
        for text, remedy in insecurities(self._given):
            yield Finding.warning(text, remedy)

    def remedy(self, error: Exception) -> str:
        if isinstance(error, AccessDenied):
            return "check the user and the password in [kafka], and the user's rights"
        if isinstance(error, Unavailable):
            return (
                "check kafka.bootstrap_servers; if a broker runs there, check kafka.security_protocol, the user and "
                "the password"
            )
        return ""
