"""What every kind of log offers besides the verbs of an open one (`transport.Transport`).

`settings.opening.backend_of` chooses the kind.  Nothing else asks which kind a log is of.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext

from ..runtime.findings import Findings
from .transport import Committed, Shape, Transport


class Backend(ABC):
    """The place of a configuration's topics, such as a folder or a cluster.

    Every method but `open` may raise `Unavailable` or `AccessDenied`, and leaves no connection open.
    """

    name: str  # of the log, in a sentence
    has_groups: bool  # Processes, on several machines, share the partitions of a topic.
    is_local: bool  # The log is on this machine, and can be asked without a network.
    makes_topics: bool  # The first record makes a topic or a partition; otherwise a missing topic is an error.

    @abstractmethod
    def open(
        self, group: str, stop: Callable[[], bool], tell: Callable[[str], None]
    ) -> AbstractContextManager[Transport]:
        """Open the log.

        Parameters
        ----------
        group
            Name of the consumer group.
        stop
            Asked while the log cannot be reached; if it says True, `Unavailable` is raised.
        tell
            Called with the reason whenever an attempt to reach the log fails.
        """

    @abstractmethod
    def describe(self, names: Iterable[str]) -> dict[str, Shape]:
        """The shapes of those topics that exist."""

    @abstractmethod
    def create(self, shapes: Mapping[str, Shape], replication: int | None) -> None:
        """Create topics; `replication` is the number of brokers that keep each, None for the brokers' own default."""

    @abstractmethod
    def search(self, topic: str, partitions: Iterable[int], time_ms: int) -> dict[int, int]:
        """Where to begin to read for the records of this time and later: no such record is before this offset.

        A partition may be missing if it has no such record.
        """

    @abstractmethod
    def trim(self, topic: str, partition: int, offset: int) -> None:
        """Remove the records before an offset, or most of them, for good."""

    @abstractmethod
    def commit(self, group: str, offsets: Mapping[tuple[str, int], Committed]) -> None:
        """Commit offsets of a group without members; they are durable when this returns."""

    @abstractmethod
    def partition_of(self, key: bytes, n_partitions: int) -> int:
        """The partition in which the log's own clients put a key."""

    # --- what a kind of log may leave as it is ------------------------------------------------------------------------

    def absence(self) -> str:
        """Why there is no log; empty if there is one, or if only a connection can tell."""
        return ""

    def sole_labelling(self, topic: str) -> AbstractContextManager[object]:
        """Keep other labelling services from a topic of labels, if only one process may write to it.

        Raises
        ------
        AlreadyInUse
            By the ``with`` statement, if there is another one.
        """
        return nullcontext()

    def group_state(self, group: str) -> str:
        """What is known of a group, in words; empty without groups."""
        return ""

    def installed(self) -> Findings:
        """Remarks about the packages that the log needs."""
        return iter(())

    def connected(self, seconds: float) -> Findings:
        """Remarks about a connection that took so many seconds."""
        return iter(())

    def remedy(self, error: Exception) -> str:
        """What to do about an error of this log; empty if the error says it itself."""
        return ""
