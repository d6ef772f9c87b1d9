"""A Kafka cluster as a `backend.Backend`, as far as it does not depend on the client."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from types import ModuleType

from ...runtime.findings import Finding, Findings
from ...runtime.text import plural
from ..backend import Backend
from ..transport import AccessDenied, Committed, Shape, Unavailable
from .log import ClusterLog
from .options import KafkaOptions, servers
from .security import identity, insecurities


class ClusterBackend(Backend):
    """The topics of a Kafka cluster; a client names its log and its module `admin`.

    Parameters
    ----------
    options
        The cluster, and this process's place in its groups.
    """

    name = "Kafka"
    has_groups = True
    is_local = False
    makes_topics = False
    _log: type[ClusterLog]
    _admin: ModuleType  # its functions do what `Backend` says, given the options of the client

    def __init__(self, options: KafkaOptions) -> None:
        self._options = options
        self._client = options.client

    def open(
        self, group: str, stop: Callable[[], bool], tell: Callable[[str], None]
    ) -> AbstractContextManager[ClusterLog]:
        return self._log.connect(replace(self._options, group=group), stop, tell)

    def describe(self, names: Iterable[str]) -> dict[str, Shape]:
        return self._admin.describe_topics(self._client, list(names))

    def create(self, shapes: Mapping[str, Shape], replication: int | None) -> None:
        self._admin.create_topics(self._client, shapes, replication)

    def search(self, topic: str, partitions: Iterable[int], time_ms: int) -> dict[int, int]:
        return self._admin.offsets_at(self._client, topic, partitions, time_ms)

    def trim(self, topic: str, partition: int, offset: int) -> None:
        self._admin.delete_records(self._client, topic, partition, offset)

    def commit(self, group: str, offsets: Mapping[tuple[str, int], Committed]) -> None:
        """Commit as an administrator, because a log commits only for members of a group."""
        self._admin.commit_offsets(self._client, group, offsets)

    def group_state(self, group: str) -> str:
        state, n_members = self._admin.describe_group(self._client, group)
        return "and was never used" if state == "Dead" else f"{state.lower()}, {plural(n_members, 'member')}"

    def connected(self, seconds: float) -> Findings:
        who, protocol = identity(self._client)
        where = ",".join(servers(self._client))
        yield Finding.ok(f"connected to {where} {who}, {protocol}, in {1000 * seconds:,.0f} ms")
        for text, remedy in insecurities(self._client):
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
