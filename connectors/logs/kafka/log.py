"""Apache Kafka as a `transport.Transport`, through kafka-python."""

from collections.abc import Collection

import kafka.errors
from kafka import KafkaConsumer, TopicPartition

from ..cluster.commit_notes import to_note
from ..cluster.log import ClusterLog
from ..cluster.options import STABLE_SECONDS
from ..transport import Committed
from .client import COMMAND_MS, client_options
from .errors import translated
from .group import Member
from .outputs import Outputs
from .reader import Reader


class KafkaLog(ClusterLog):
    """The topics of a Kafka cluster, as `cluster.log.ClusterLog` describes them."""

    _reader_class, _outputs_class, _member_class = Reader, Outputs, Member

    def committed(self, topic: str, partitions: Collection[int] | None = None) -> dict[int, Committed]:
        is_transactional = self._options.is_transactional
        numbers = self._reader.partitions(topic) if partitions is None else partitions
        client = client_options(self._options.client, KafkaConsumer) | {
            "group_id": self._options.group,
            "enable_auto_commit": False,
            "isolation_level": "read_committed" if is_transactional else "read_uncommitted",
        }
        timeout_ms = int(1000 * STABLE_SECONDS) if is_transactional else COMMAND_MS
        with translated():
            try:
                with KafkaConsumer(**client) as consumer:
                    found = {
                        number: consumer.committed(TopicPartition(topic, number), metadata=True, timeout_ms=timeout_ms)
                        for number in numbers
                    }
            except kafka.errors.KafkaTimeoutError:
                raise self._uncertain(topic) from None
        return {
            number: Committed(answer.offset, to_note(answer.metadata)) for number, answer in found.items() if answer
        }
