"""Checkpoints and journals of a ledger; the folder is a cache of what the ledger has."""

import secrets
from collections.abc import Iterable, Sequence
from pathlib import Path

from ....runtime.folders import make_private, naming, touch_private
from ..checkpoint import CheckpointStore, Number, checkpoint_path, journal_path, stored_files
from ..journal import Cut, Journal
from .contents import Contents
from .ledger import Ledger


class RemoteStore(CheckpointStore):
    """A partition's checkpoints and journal in a ledger.

    A new owner claims the next epoch by a record.  Then it makes the folder what the ledger says, and everything else
    is as in a folder that trainers share.  If the ledger has no checkpoint yet, the folder's own ones count, so a
    trainer with ``state.store = "dir"`` can change to a ledger.

    Parameters
    ----------
    folder, keep
        As for `CheckpointStore`; the ledger keeps fewer checkpoints.
    ledger
        The ledger of the partition.
    """

    def __init__(self, folder: Path, keep: int, ledger: Ledger) -> None:
        self._ledger = ledger
        self._owner = secrets.token_hex(8)
        contents = ledger.read()
        while True:
            super().__init__(folder, keep, contents.epoch + 1)
            if ledger.claim(contents, self.epoch, self._owner):
                break
        _fill(folder, contents)
        self._begins = {number: whole.begin for number, whole in contents.checkpoints.items()}

    def save(self, checkpoint: bytes, sequence: int, again: Iterable[Cut] = ()) -> Journal:
        number = self.epoch, sequence
        begin = self._ledger.write_checkpoint(number, self._owner, checkpoint)
        new = super().save(checkpoint, sequence, again)
        self._ledger.settle()
        counting = {other: at for other, at in self._begins.items() if checkpoint_path(self.folder, other).exists()}
        self._begins = dict([*counting.items(), (number, begin)][-self._ledger.keep :])
        self._ledger.remove_before(min(self._begins.values()))
        return new

    def _new_journal(self, number: Number, past: Sequence[Cut], n_tries: int) -> Journal:
        return _RemoteJournal(journal_path(self.folder, number), past, n_tries, self._ledger, number)


class _RemoteJournal(Journal):
    """A journal whose lines are also in the ledger; a cut is durable there before it is consumed."""

    def __init__(self, path: Path, past: Sequence[Cut], n_tries: int, ledger: Ledger, number: Number) -> None:
        super().__init__(path, past, n_tries)
        self._ledger = ledger
        self._is_retried = False  # the last cut
        try:
            ledger.begin_journal(number, path.read_bytes())
        except BaseException:
            self.close()
            raise

    def append(self, cut: Cut) -> None:
        super().append(cut)
        self._ledger.settle()
        self._is_retried = False

    def retry(self) -> None:
        super().retry()
        self._ledger.settle()
        self._is_retried = True

    def done(self) -> None:
        """Note it with the next cut; but a cut must not be suspected because a process was often killed after it."""
        super().done()
        if self._is_retried:
            self._ledger.settle()
            self._is_retried = False

    def _write(self, text: bytes) -> bytes:
        line = super()._write(text)
        self._ledger.add_to_journal(line)
        return line


def _fill(folder: Path, contents: Contents) -> None:
    """Make a folder hold what a ledger has, and nothing else; it stays as it is if the ledger has no checkpoint."""
    if not contents.checkpoints:
        return
    make_private(folder.parent)
    make_private(folder)
    files = {checkpoint_path(folder, number): whole.blob for number, whole in contents.checkpoints.items()}
    journals = {journal_path(folder, number): content for number, content in contents.journals().items()}
    for path in stored_files(folder):
        has_more = path in journals and path.read_bytes().startswith(journals[path])
        if not has_more and files.get(path) != path.read_bytes():
            path.unlink()
    for path, content in (files | journals).items():
        if not path.exists():
            _write(path, content)


def _write(path: Path, content: bytes) -> None:
    """Write a file of the cache, which need not outlive the machine."""
    temporary = path.with_name(f".{path.name}.tmp")
    with naming(path):
        touch_private(temporary)
        temporary.write_bytes(content)
    temporary.replace(path)
