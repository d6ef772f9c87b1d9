"""A Kafka cluster as a `backend.Backend`, as far as it does not depend on the client."""

from abc import abstractmethod

from ...runtime.findings import OK, WARNING, Finding, Findings
from ...runtime.text import plural
from ..backend import Backend
from ..transport import AccessDenied, Unavailable
from .options import KafkaOptions, servers
from .security import identity, insecurities


class ClusterBackend(Backend):
    """The topics of a Kafka cluster.

    Parameters
    ----------
    options
        The cluster, and this process's place in its groups.
    """

    name = "Kafka"
    has_groups = True
    is_local = False
    makes_topics = False

    def __init__(self, options: KafkaOptions) -> None:
        self._options = options
        self._client = options.client

    @abstractmethod
    def _describe_group(self, group: str) -> tuple[str, int]:
        """The state of a group, as the broker calls it, and the number of its members."""

    def group_state(self, group: str) -> str:
        state, n_members = self._describe_group(group)
        return "and was never used" if state == "Dead" else f"{state.lower()}, {plural(n_members, 'member')}"

    def connected(self, seconds: float) -> Findings:
        who, protocol = identity(self._client)
        where = ",".join(servers(self._client))
        yield Finding(OK, f"connected to {where} {who}, {protocol}, in {1000 * seconds:,.0f} ms")
        for text, remedy in insecurities(self._client):
            yield Finding(WARNING, text, remedy)

    def remedy(self, error: Exception) -> str:
        if isinstance(error, AccessDenied):
            return "check the user and the password in [kafka], and the user's rights"
        if isinstance(error, Unavailable):
            return (
                "check kafka.bootstrap_servers; if a broker runs there, check kafka.security_protocol, the user and "
                "the password"
            )
        return ""
