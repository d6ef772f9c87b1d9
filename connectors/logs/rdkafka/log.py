"""Apache Kafka as a `transport.Transport`, through librdkafka."""

from collections.abc import Collection

from confluent_kafka import TopicPartition

from ..cluster.commit_notes import to_certain_note
from ..cluster.log import ClusterLog
from ..cluster.options import COMMAND_SECONDS, STABLE_SECONDS
from ..transport import Committed, Unavailable
from .client import asking_consumer, require_right
from .group import Member
from .outputs import Outputs
from .reader import Reader


class RdKafkaLog(ClusterLog):
    """The topics of a Kafka cluster, as `cluster.log.ClusterLog` describes them."""

    _reader_class, _outputs_class, _member_class = Reader, Outputs, Member

    def committed(self, topic: str, partitions: Collection[int] | None = None) -> dict[int, Committed]:
        numbers = self._reader.partitions(topic) if partitions is None else partitions
        if not numbers:
            return {}
        try:
            found = self._ask_group([TopicPartition(topic, number) for number in numbers])
        except Unavailable:
            raise self._uncertain(topic) from None
        return {one.partition: Committed(one.offset, _note_of(one)) for one in found if one.offset >= 0}

    def _ask_group(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        """What the group has committed.

        A consumer asks for it.  An administrator's `list_consumer_group_offsets` ends the process if the broker hangs,
        in librdkafka 2.16.
        """
        seconds, level = COMMAND_SECONDS, "read_uncommitted"
        if self._options.is_transactional:
            seconds, level = STABLE_SECONDS, "read_committed"
        with asking_consumer(self._options.client, group_id=self._options.group, isolation_level=level) as consumer:
            found: list[TopicPartition] = consumer.committed(partitions, seconds)
        require_right(found)
        return found


def _note_of(partition: TopicPartition) -> str:
    try:
        return to_certain_note(partition.metadata or "", partition.partition)
    except UnicodeDecodeError:
        return to_certain_note(None, partition.partition)
