"""Checkpoints, journals and models of keys in a ledger; the folder is a cache of what the ledger has.

A ledger can be removed only from its beginning, and a file with models of keys may be needed for long.  So a file that
is far from the end counts as *crowded*: the trainer moves its models to the next file.  Then the ledger can be removed
up to the next file that is needed.
"""

import secrets
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from ....runtime.folders import make_private, replace_private
from ..checkpoint import CheckpointStore, Number, checkpoint_path, journal_path, stored_files
from ..journal import Cut, Journal
from ..model_files import model_files
from .contents import Contents
from .ledger import Ledger

_MOST_PER_NEEDED = 2  # A file is crowded if more bytes than this follow it, for each byte that is needed.


class RemoteStore(CheckpointStore):
    """A partition's checkpoints, journal and models of keys in a ledger.

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
        present = {path.name for path in model_files(folder)}
        self._files = {name: whole.begin for name, whole in contents.files.items() if name in present}
        self._n_bytes, self._sizes = contents.n_bytes, contents.sizes
        self._needed = max([len(whole.blob) for whole in contents.checkpoints.values()], default=0)

    @property
    def crowded(self) -> set[str]:
        needed = self._needed + sum(path.stat().st_size for path in model_files(self.folder))
        limit = self._n_bytes - _MOST_PER_NEEDED * needed
        return {name for name, begin in self._files.items() if self._sizes.get(begin, 0) < limit}

    def save(self, checkpoint: bytes, sequence: int, again: Iterable[Cut] = ()) -> Journal:
        number = self.epoch, sequence
        files = {path.name: path.read_bytes() for path in model_files(self.folder) if path.name not in self._files}
        begin = self._ledger.write_checkpoint(number, self._owner, checkpoint, files)
        self._note(begin, checkpoint, files)
        new = super().save(checkpoint, sequence, again)
        self._ledger.settle()
        counting = {other: at for other, at in self._begins.items() if checkpoint_path(self.folder, other).exists()}
        self._begins = dict([*counting.items(), (number, begin)][-self._ledger.keep :])
        self._remove_old_records()
        return new

    def _note(self, begin: int, checkpoint: bytes, files: Mapping[str, bytes]) -> None:
        """Note what was written to the ledger; the journal hardly matters."""
        self._sizes[begin] = self._n_bytes
        self._n_bytes += len(checkpoint) + sum(map(len, files.values()))
        self._needed = self._ledger.keep * len(checkpoint)
        self._files |= dict.fromkeys(files, begin)

    def _remove_old_records(self) -> None:
        present = {path.name for path in model_files(self.folder)}
        self._files = {name: at for name, at in self._files.items() if name in present}
        oldest = min([*self._begins.values(), *self._files.values()])
        self._sizes = {at: size for at, size in self._sizes.items() if at >= oldest}
        self._ledger.remove_before(oldest)

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
    files |= {folder / name: whole.blob for name, whole in contents.files.items()}
    journals = {journal_path(folder, number): content for number, content in contents.journals().items()}
    for path in [*stored_files(folder), *model_files(folder)]:
        has_more = path in journals and path.read_bytes().startswith(journals[path])
        if not has_more and files.get(path) != path.read_bytes():
            path.unlink()
    for path, content in (files | journals).items():
        if not path.exists():
            replace_private(path, content)  # the cache need not outlive the machine
