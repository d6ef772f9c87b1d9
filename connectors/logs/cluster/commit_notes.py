"""The note of a commit, as both clients of Kafka can read it.

librdkafka sends a note with a zero byte behind it, and reads a note up to the first zero byte.  kafka-python sends what
it is given.  So without a zero byte, librdkafka reads a note of kafka-python with whatever follows it in memory, and we
give kafka-python one.  A note also carries a mark of its end, which tells it from the notes of version 0.1.0.
"""

from ..transport import TopicMismatch

_END = "\n"
ZERO = "\0"  # what librdkafka sends behind a note


def to_metadata(note: str) -> str:
    """What librdkafka is given for a note, which has no line break in it; kafka-python needs `ZERO` behind it."""
    return note + _END if note else ""


def to_note(metadata: str | None) -> str:
    """The note in what kafka-python has read, also if it was sent without our mark."""
    return (metadata or "").partition(_END)[0].rstrip(ZERO)


def to_certain_note(metadata: str | None, partition: int) -> str:
    """The note in what confluent-kafka has read; None stands for bytes that are no text.

    Raises
    ------
    TopicMismatch
        If the note has no mark, so that its end is unknown.
    """
    if metadata == "":
        return ""
    note, end, _ = (metadata or "").partition(_END)
    if not end:
        raise TopicMismatch(
            f"the note of the commit for partition {partition} was written by version 0.1.0 or by another program, and "
            "librdkafka cannot tell where it ends. Run once with kafka.client = 'kafka-python': it reads the note, and "
            "commits one that both clients can read"
        )
    return note
