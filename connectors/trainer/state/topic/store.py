"""Checkpoints and journals on a topic; the folder is a cache of what the topic has."""

import secrets
from collections.abc import Iterable, Sequence
from pathlib import Path

from ....runtime.folders import make_private, write_private
from ..checkpoint import CheckpointStore, Number, checkpoint_path, journal_path, stored_files
from ..journal import Cut, Journal
from .ledger import Contents, Ledger


class TopicStore(CheckpointStore):
    """A partition's checkpoints and journal on a topic.

    A new owner claims the next epoch by a record.  Then it makes the folder what the topic says, and everything else is
    as in a folder that trainers share.  If the topic has no checkpoint yet, the folder's own ones count, so a trainer
    with ``state.store = "dir"`` can change to the topic.

    Parameters
    ----------
    folder, keep
        As for `CheckpointStore`; the topic itself keeps one checkpoint.
    ledger
        The partition of the topic.
    """

    def __init__(self, folder: Path, keep: int, ledger: Ledger) -> None:
        self._ledger = ledger
        self._owner = secrets.token_hex(8)
        contents = ledger.read()
        while True:
            _fill(folder, contents)
            super().__init__(folder, keep, contents.epoch + 1)
            if ledger.claim(contents, self.epoch, self._owner):
                break
        _fill(folder, contents)  # with what the last owner wrote before the claim

    def save(self, checkpoint: bytes, sequence: int, again: Iterable[Cut] = ()) -> Journal:
        begin = self._ledger.write_checkpoint((self.epoch, sequence), self._owner, checkpoint)
        new = super().save(checkpoint, sequence, again)
        self._ledger.settle()
        self._ledger.remove_before(begin)
        return new

    def _new_journal(self, number: Number, past: Sequence[Cut], n_tries: int) -> Journal:
        return _TopicJournal(journal_path(self.folder, number), past, n_tries, self._ledger, number)


class _TopicJournal(Journal):
    """A journal whose lines are also on the topic; a cut is durable there before it is consumed."""

    def __init__(self, path: Path, past: Sequence[Cut], n_tries: int, ledger: Ledger, number: Number) -> None:
        super().__init__(path, past, n_tries)
        self._ledger = ledger
        try:
            ledger.begin_journal(number, path.read_bytes())
        except BaseException:
            self.close()
            raise

    def append(self, cut: Cut) -> None:
        super().append(cut)
        self._ledger.settle()

    def retry(self) -> None:
        super().retry()
        self._ledger.settle()

    def _write(self, text: bytes) -> bytes:
        line = super()._write(text)
        self._ledger.add_to_journal(line)
        return line


def _fill(folder: Path, contents: Contents) -> None:
    """Make a folder hold what a topic has, and nothing else; it stays as it is if the topic has no checkpoint."""
    if contents.checkpoint is None:
        return
    make_private(folder.parent)
    make_private(folder)
    number, blob = contents.checkpoint
    files = {checkpoint_path(folder, number): blob}
    journals = {journal_path(folder, number): content for number, content in contents.journals().items()}
    for path in stored_files(folder):
        has_more = path in journals and path.read_bytes().startswith(journals[path])
        if not has_more and files.get(path) != path.read_bytes():
            path.unlink()
    for path, content in (files | journals).items():
        if not path.exists():
            write_private(path, content)
