"""The labels of a file on their way to a topic: each one goes to the partition of its event, under the event's id.

Files often write the id 7 of an event as the text "7", which is another id.  And a label in another partition than its
event's never meets it.  So the events are read once, and each label gets its event's id, key and partition.
"""

import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ...logs.transport import Transport
from ...records.codec import readable
from ...records.columns import Columns
from ...records.formats.base import show
from ...records.people.label_files import FileLabel, read_label_file
from ...records.text_files import Mistakes
from ...runtime.folders import FileError
from ...settings.sections import Settings
from .log_access import watched_topic


class Home(NamedTuple):
    """Where an event is: its partition, its id, and the key of its record."""

    partition: int
    id: str | int
    key: bytes | None


Placed = tuple[bytes, Home | None]  # the value of a record, and its place; None: the log chooses


class LabelFile:
    """A file of labels.

    Parameters
    ----------
    path, file_format, columns
        As for `read_label_file`.
    settings
        The configuration, which names the topic of the events and the classes.
    """

    def __init__(self, path: Path, file_format: str, columns: Columns, settings: Settings) -> None:
        self._path, self._format, self._columns = path, file_format, columns
        self._settings = settings
        self._homes: dict[str, set[Home]] = defaultdict(set)  # by the id as text, for the ids of the file
        self._n_partitions = 1

    def check(self) -> int:
        """Read the file, and return the number of its labels.

        Raises
        ------
        FileError, OSError
            As `read_label_file`.
        ConfigError
            If the file needs a library that is not installed.
        """
        n_labels = 0
        for label in self._labels():
            self._homes[str(label.fields["id"])] = set()
            n_labels += 1
        return n_labels

    def find_events(self, log: Transport) -> int:
        """Find the events of the labels; return the number of labels without one.

        Raises
        ------
        FileError
            If it is not certain to which partition a label belongs.
        """
        codec, topic = self._settings.codec(), self._settings.log.topic
        self._n_partitions = max(1, len(log.end_offsets(topic)))
        for record, event in readable(watched_topic(log, topic, "finding the events"), codec.decode):
            if str(event.id) in self._homes:
                self._homes[str(event.id)].add(Home(record.partition, event.id, record.key))
        n_missing, mistakes = 0, Mistakes()
        for label in self._labels():
            with mistakes:
                n_missing += self._home(label) not in self._homes[str(label.fields["id"])]
        mistakes.complain()
        return n_missing

    def placed(self) -> Iterator[Placed]:
        """The values of the labels' records, and where they belong."""
        for label in self._labels():
            home = self._home(label)
            yield json.dumps({**label.fields, "id": home.id}, separators=(",", ":")).encode(), home

    def _labels(self) -> Iterator[FileLabel]:
        return read_label_file(self._path, self._format, self._columns, self._settings.codec())

    def _home(self, label: FileLabel) -> Home:
        """The place of a label's event; for an event that is not there, the partition that the file names."""
        id_, partition = label.fields["id"], label.partition
        homes = self._homes[str(id_)]
        if len(homes) > 1 and partition is not None:
            homes = {home for home in homes if home.partition == partition}
        if len({home[:2] for home in homes}) > 1:
            homes = {home for home in homes if type(home.id) is type(id_)}
        if len({home[:2] for home in homes}) > 1:
            raise FileError(
                f"{label.where}: several partitions have an event {show(id_)}; say which in a column 'partition'"
            )
        if homes:
            return min(homes, key=lambda home: home.key or b"")
        topic = self._settings.log.topic
        if partition is None and self._n_partitions > 1:
            raise FileError(
                f"{label.where}: topic {topic!r} has no event {show(id_)}, so its partition must be named in a column "
                "'partition'"
            )
        if partition is not None and partition >= self._n_partitions:
            raise FileError(f"{label.where}: topic {topic!r} has no partition {partition}")
        return Home(partition or 0, id_, None)
