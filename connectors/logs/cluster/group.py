"""Membership of a consumer group: which partitions are ours."""

import logging
import queue
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from ..transport import Committed, Unavailable
from .options import CLOSE_SECONDS

logger = logging.getLogger(__name__)

# For one look at the group.  With looks of 0.2 s, some trainers with kafka-python waited for partitions for ever.
LOOK_SECONDS = 0.5
Offsets = Mapping[tuple[str, int], Committed]
Kind = Literal["assigned", "revoked", "lost"]


@dataclass(eq=False)
class Notice:
    """A decision of the group that the loop has not heard of yet.

    Parameters
    ----------
    kind
        What became of the partitions.
    numbers
        The partitions.
    answer
        Called when the loop has heard of it; the group goes on then.
    offsets
        The loop's offsets, which the member commits before the group goes on.
    """

    kind: Kind
    numbers: list[int]
    answer: Callable[[], object] = lambda: None
    offsets: dict[tuple[str, int], Committed] = field(default_factory=dict, init=False)


class Member(ABC):
    """This process's membership of the group; a thread of its own keeps it up while the loop is busy.

    The group's decisions wait until the loop asks for them, and a revocation waits until the loop has saved its state.
    If that takes too long, the group goes on without us; the checkpoints' epochs then keep two owners apart.
    """

    def __init__(self, topic: str) -> None:
        self.topic = topic
        self._notices: queue.SimpleQueue[Notice] = queue.SimpleQueue()
        self._offsets: dict[tuple[str, int], Committed] = {}  # to commit at the next opportunity
        self._offsets_lock = threading.Lock()
        self._failure: Exception | None = None
        self._n_losses = 0  # how often all partitions were lost
        self._n_told = 0  # how many of these losses the loop has heard of
        self._is_closing = threading.Event()
        self._thread = threading.Thread(target=self._take_part, name="group", daemon=True)

    def start(self) -> None:
        """Join the group; `news` tells what becomes of it."""
        self._thread.start()

    # --- for the loop -------------------------------------------------------------------------------------------------

    def news(self) -> Iterator[Notice]:
        """The group's decisions since the last call."""
        if self._failure is not None:
            raise self._failure
        while not self._notices.empty():
            notice = self._notices.get()
            self._n_told += notice.kind == "lost"
            yield notice

    @property
    def is_losing(self) -> bool:
        """Whether partitions are lost and the loop has not heard of it; true before the group is joined again."""
        return self._n_losses != self._n_told

    def commit(self, offsets: Offsets) -> None:
        """Commit soon."""
        with self._offsets_lock:
            self._offsets |= offsets

    @abstractmethod
    def metadata(self) -> object | None:
        """The membership, as a transaction needs it; None while the group does not know us."""

    def close(self) -> None:
        """Leave the group, except as a named member, which is expected back."""
        self._is_closing.set()
        while not self._notices.empty():
            self._notices.get().answer()
        self._thread.join(2 * CLOSE_SECONDS)

    # --- on the thread ------------------------------------------------------------------------------------------------

    @abstractmethod
    def _subscribe(self) -> None:
        """Join the group."""

    @abstractmethod
    def _look(self) -> None:
        """Hear what the group has decided, for at most `LOOK_SECONDS`; raises `Unavailable` if it does not answer."""

    @abstractmethod
    def _commit_now(self, offsets: Offsets) -> bool:
        """Commit, and wait for it; False if it may succeed later."""

    @abstractmethod
    def _leave(self) -> None:
        """Close the connections."""

    def _take_part(self) -> None:
        try:
            self._subscribe()
            while not self._is_closing.is_set():
                try:
                    self._look()
                    self._commit()
                except Unavailable as error:
                    logger.info("the group does not answer: %s", error)
                    time.sleep(LOOK_SECONDS)
        except Exception as error:
            self._failure = error
        finally:
            self._end()

    def _end(self) -> None:
        try:
            self._commit()
        except Exception as error:  # Only the lag that tools show depends on it.
            logger.info("the last offsets are not committed: %s", error)
        finally:
            self._leave()

    def _commit(self) -> None:
        with self._offsets_lock:
            offsets, self._offsets = self._offsets, {}
        if offsets and not self._commit_now(offsets):
            with self._offsets_lock:
                self._offsets = offsets | self._offsets
            raise Unavailable("the offsets are not committed yet")

    def _tell(
        self, kind: Kind, partitions: Collection[Any], answer: Callable[[], object] = lambda: None
    ) -> Notice | None:
        """Let the loop hear what became of partitions; None if there is none of them, or nothing to hear any more."""
        if not partitions or self._is_closing.is_set():
            return None
        notice = Notice(kind, sorted(one.partition for one in partitions), answer)
        self._n_losses += kind == "lost"
        self._notices.put(notice)
        return notice
