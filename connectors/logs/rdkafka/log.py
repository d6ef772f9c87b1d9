"""Apache Kafka as a `transport.Transport`, through librdkafka."""

from collections.abc import Collection

from ..cluster.log import ClusterLog
from ..cluster.options import COMMAND_SECONDS, STABLE_SECONDS
from ..transport import Committed, Unavailable
from .admin import committed_offsets
from .client import Administrator
from .group import Member
from .outputs import Outputs
from .reader import Reader


class RdKafkaLog(ClusterLog):
    """The topics of a Kafka cluster, as `cluster.log.ClusterLog` describes them."""

    def _new_reader(self) -> Reader:
        return Reader(self._options)

    def _new_outputs(self) -> Outputs:
        return Outputs(self._options, self._reader.why_silent)

    def _new_member(self, topic: str) -> Member:
        return Member(self._options, topic)

    def committed(self, topic: str, partitions: Collection[int] | None = None) -> dict[int, Committed]:
        is_transactional = self._options.is_transactional
        numbers = self._reader.partitions(topic) if partitions is None else partitions
        try:
            with Administrator(self._options.client) as admin:
                return committed_offsets(
                    admin,
                    self._options.group,
                    topic,
                    numbers,
                    stable=is_transactional,
                    seconds=STABLE_SECONDS if is_transactional else COMMAND_SECONDS,
                )
        except Unavailable:
            raise self._uncertain(topic) from None
