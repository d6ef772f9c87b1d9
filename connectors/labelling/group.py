"""Near-duplicates: which other events an answer is for, beside the one that was asked about."""

from collections.abc import Iterator

from ..records.labels import Place
from .answer import Given, Word
from .book import Book


def for_others(book: Book, query_id: str, word: Word, now: int, *, for_all: bool) -> Iterator[tuple[str, Given]]:
    """What an answer means for the near-duplicates of a question's event.

    Those that were answered with the question get the new label.  If there is none, theirs is taken back.  With
    `for_all`, the others get it too.  Of them, an event that something else was said of, or that has an open question
    of its own, is left out.  If questions want the answers of several people, this is one of them: only what the same
    person has answered is left out.
    """
    shown = book.question(query_id)
    if shown is None:
        return
    for each in shown.alike:
        other = each["query_id"]
        book.recall(other)
        given = book.last(other, word.who)
        is_free = given is None or given.op == "retract"
        is_taken = for_all and is_free and (book.ballots.answers > 1 or other not in book.open)
        if not is_taken and (given is None or given.op != "set" or given.like != query_id):
            continue
        own, like = (Word("retract", None, word.who), None) if word.y is None else (word, query_id)
        if given is None or not given.says(own):
            rev = now if given is None else max(now, given.rev + 1)
            yield other, Given(*own, rev, Place(shown.partition, each["id"]), like)
