"""A Kafka cluster as a `backend.Backend`, as far as it does not depend on the client."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, closing
from dataclasses import replace

from ...runtime.findings import Finding, Findings
from ...runtime.text import plural
from ..backend import Backend
from ..transport import AccessDenied, Committed, Shape, Unavailable
from .log import Client, ClusterLog
from .options import KafkaOptions, servers
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
    _client: Client

    def __init__(self, options: KafkaOptions) -> None:
        self._options, self._given = options, options.client

    def open(
        self, group: str, stop: Callable[[], bool], tell: Callable[[str], None]
    ) -> AbstractContextManager[ClusterLog]:
        return closing(ClusterLog.connect(replace(self._options, group=group), self._client, stop, tell))

    def describe(self, names: Iterable[str]) -> dict[str, Shape]:
        return self._client.admin.describe_topics(self._given, list(names))

    def create(self, shapes: Mapping[str, Shape], replication: int | None) -> None:
        self._client.admin.create_topics(self._given, shapes, replication)

    def search(self, topic: str, partitions: Iterable[int], time_ms: int) -> dict[int, int]:
        return self._client.admin.offsets_at(self._given, topic, partitions, time_ms)

    def trim(self, topic: str, partition: int, offset: int) -> None:
        self._client.admin.delete_records(self._given, topic, partition, offset)

    def commit(self, group: str, offsets: Mapping[tuple[str, int], Committed]) -> None:
        """Commit as an administrator, because a log commits only for members of a group."""
        self._client.admin.commit_offsets(self._given, group, offsets)

    def group_state(self, group: str) -> str:
        state, n_members = self._client.admin.describe_group(self._given, group)
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
