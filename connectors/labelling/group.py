"""Near-duplicates: which other events an answer is for, beside the one that was asked about."""

from collections.abc import Iterator

from ..records.labels import Place
from .answer import Given, Word
from .book import Book


def with_others(book: Book, query_id: str, word: Word, now: int) -> Iterator[tuple[str, Given]]:
    """The answers for the near-duplicates of a question's event, if its answer is for all of them.

    An event that something else was said of, or that has an open question of its own, is left out.  If questions
    want the answers of several people, this is one of them: only what the same person has answered is left out.
    """
    for other, place, given in _others(book, query_id, word.who):
        is_free = given is None or given.op == "retract"
        if (is_free and (book.ballots.answers > 1 or other not in book.open)) or _goes_with(given, query_id):
            yield from _unless_given(other, given, Given(*word, now, place, like=query_id))


def following(book: Book, query_id: str, word: Word, now: int) -> Iterator[tuple[str, Given]]:
    """What a changed answer means for the near-duplicates that were answered with the question.

    They get the new label.  If there is none, theirs is taken back.
    """
    for other, place, given in _others(book, query_id, word.who):
        if _goes_with(given, query_id):
            new = Given(*word, now, place, like=query_id)
            if word.y is None:
                new = Given("retract", None, word.who, now, place)
            yield from _unless_given(other, given, new)


def _others(book: Book, query_id: str, who: str) -> Iterator[tuple[str, Place, Given | None]]:
    shown = book.question(query_id)
    if shown is None:
        return
    for each in shown.alike:
        book.recall(each["query_id"])
        yield each["query_id"], Place(shown.partition, each["id"]), book.last(each["query_id"], who)


def _goes_with(given: Given | None, query_id: str) -> bool:
    return given is not None and given.op == "set" and given.like == query_id


def _unless_given(other: str, given: Given | None, new: Given) -> Iterator[tuple[str, Given]]:
    if given is None:
        yield other, new
    elif not given.says(new.by):
        yield other, new._replace(rev=max(new.rev, given.rev + 1))
