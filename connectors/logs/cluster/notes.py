"""The note of a commit, as both clients of Kafka can read it.

confluent-kafka sends a note with a zero byte behind it, and reads a note up to the first zero byte.  kafka-python sends
none and keeps what it reads.  So confluent-kafka reads a note of kafka-python with whatever follows it in memory, and
kafka-python reads a zero byte more.  A note therefore carries a mark of its end.
"""

from ..transport import TopicMismatch

_END = "\n"


def to_metadata(note: str) -> str:
    """What a client sends for a note, which has no line break in it."""
    return note + _END if note else ""


def to_note(metadata: str | None) -> str:
    """The note in what kafka-python has read, also if it was sent without our mark."""
    return (metadata or "").partition(_END)[0].rstrip("\0")


def to_certain_note(metadata: str | None, partition: int) -> str:
    """The note in what confluent-kafka has read; None stands for bytes that are no text.

    Raises
    ------
    TopicMismatch
        If the note has no mark, so that nobody knows where it ends.
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
