"""Near-duplicates: what is found, by the slow way of comparing all texts; and what one answer for several does."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamsvm import LASVM
from streamsvm.active import Answer, ArrayPool, LabellingLoop, MaxLabels, NearDuplicates, label_pool, near_duplicates
from streamsvm.active.choosing.alike import MOST

WORDS = st.sampled_from(["you", "have", "won", "a", "prize", "call", "us", "now", "free", "entry", "see", "at", "noon"])
TEXTS = st.lists(st.lists(WORDS, min_size=1, max_size=14).map(" ".join), min_size=1, max_size=12)


def naive_likeness(a: str, b: str) -> float:
    """The share of the runs of four characters that two texts have in common."""

    def runs(text: str) -> set[str]:
        plain = " ".join(re.findall(r"\w+", text.casefold()))
        return {plain[i : i + 4] for i in range(max(1, len(plain) - 3))} - {""}

    both, either = runs(a) & runs(b), runs(a) | runs(b)
    return len(both) / len(either) if either else 0.0


@given(TEXTS)
@settings(max_examples=60, deadline=None)
def test_what_is_found_is_alike_and_what_is_equal_is_found(texts):
    found = NearDuplicates()
    for key, text in enumerate(texts):
        found.add(key, text)
    for key, text in enumerate(texts):
        near = found.like(key)
        shares = [naive_likeness(text, texts[other]) for other in near]
        assert all(share >= 0.8 for share in shares)
        assert shares == sorted(shares, reverse=True)
        assert {other for other, its in enumerate(texts) if its == text and other != key} <= set(near)


@given(TEXTS)
@settings(max_examples=60, deadline=None)
def test_copies_have_the_same_words_in_the_same_order(texts):
    rows = range(len(texts))
    expected = [next(other for other in rows if texts[other] == texts[row]) for row in rows]
    written = [text.upper().replace(" ", ",  ") + "!" * row for row, text in enumerate(texts)]
    assert near_duplicates(written).tolist() == expected


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("number 112", "number 113"),
        ("Your order number 4711 was refused by the bank", "Your order number 4712 was refused by the bank"),
        ("The room temperature in the hall is 18 C today", "The room temperature in the hall is 81 C today"),
        ("please pay 10 to our account until the end of May", "please pay 100 to our account until the end of May"),
        ("the dose of this medicine is .5 mg in the morning", "the dose of this medicine is 5 mg in the morning"),
        ("it has been warmer than -5 C on the hill all day", "it has been warmer than 5 C on the hill all day"),
        ("the answer of the support team is fine, thank you", "the answer of the support team isn't fine, thank you"),
        ("this product is really good, I would buy it again", "this product is really not good, I would buy it again"),
        ("possible failure of the pump in building seven", "impossible failure of the pump in building seven"),
        ("in the final of the cup our team beat their team", "in the final of the cup their team beat our team"),
        ("the visit of your people was as always :)", "the visit of your people was as always :("),
        ("the visit of your people was \N{THUMBS UP SIGN}", "the visit of your people was \N{THUMBS DOWN SIGN}"),
        ("it was a good idea to write a book in C++", "it was a good idea to write a book in C#"),
        ("the parcel is at the door of the neighbour", "the parcel is at the door of the neighbour?"),
        (" ".join(f"w{i}" for i in range(300)), " ".join(f"w{i}" for i in range(299))),
    ],
)  # fmt: skip
def test_one_sign_that_may_change_the_label_makes_another_text(one, other):
    assert near_duplicates([one, other, one.upper()]).tolist() == [0, 1, 0]


def test_copies_have_the_same_rest():
    near = NearDuplicates()
    for key, rest in enumerate(["10", "10", "100"]):
        near.add(key, "refused by the bank", rest)
    assert near.copies(0) == [1]
    assert near.copies(2) == []
    assert near.like(2) == [0, 1]


def test_texts_of_80_percent_are_found_nearly_always():
    rng, n_found = np.random.default_rng(0), 0
    for trial in range(200):
        letters = rng.choice(list("abcdefghijklmnopqrstuvwxyz"), 100)
        near = NearDuplicates()
        near.add(1, "".join(letters))
        near.add(2, "".join([*letters[:90], *f"{trial:010}"]))  # 87 of 107 runs
        n_found += near.like(1) == [2]
    assert n_found >= 198


def test_a_typing_error_in_a_short_text_makes_one_that_is_alike():
    texts = ["running out of time, and of patience too", "Running out of tme - and of patience, too!", "running, no"]
    assert near_duplicates([*texts, "", "!"], likeness=0.8).tolist() == [0, 0, 2, 3, 4]
    assert near_duplicates(texts).tolist() == [0, 1, 2]


def test_a_copy_of_an_image_is_like_it_and_another_one_is_not():
    rng, near = np.random.default_rng(0), NearDuplicates()
    images = rng.random((20, 16, 16)).cumsum(axis=1)
    for number, image in enumerate(images):
        near.add(number, image.ravel().tolist())
        near.add(100 + number, (0.8 * image + 0.002 * rng.normal(size=image.shape)).ravel().tolist())  # darker, noisy
    assert all(near.like(number) == [100 + number] for number in range(20))
    assert all(near.copies(number) == [] for number in range(20))  # what differs may be a scratch
    near.add(200, images[0].ravel().tolist())
    assert near.copies(0) == [200]
    near.add(-1, [0.5] * 256)
    near.add(-2, [0.7] * 256)
    assert near.like(-1) == []  # nothing rises or falls


def test_what_is_found_does_not_depend_on_the_order_of_coming():
    texts = [f"your parcel {number // 3} waits for you at the shop in the main street" for number in range(30)]
    one, other = NearDuplicates(), NearDuplicates()
    for key in range(30):
        one.add(key, texts[key])
    for key in [*range(40, 50), *reversed(range(30))]:
        other.add(key, texts[key % 30])
    for key in range(40, 50):
        other.discard(key)
    assert len(one) == len(other) == 30
    assert [one.like(key) for key in range(30)] == [other.like(key) for key in range(30)]


def test_memory_and_answers_have_bounds():
    near = NearDuplicates()
    long = " ".join(f"w{number}" for number in range(50_000))
    near.add(-1, long)
    near.add(-2, long + " and more")
    assert near.like(-1) == [-2]
    assert near._texts[-1][0].nbytes <= 2048
    for key in range(2 * MOST):
        near.add(key, "the same text as always")
    assert len(near.like(0)) == MOST
    for key in [-1, -2, *range(2 * MOST)]:
        near.discard(key)
    assert not near._places
    near.add(7, " .,! ")
    near.add(8, "")
    assert near.like(7) == near.like(8) == []


def test_groups_have_the_number_of_their_first_text():
    texts = ["Call me at noon", "You won a prize", "call me, at noon", "You won 2 tickets", "CALL ME AT NOON!"]
    assert near_duplicates(texts).tolist() == [0, 1, 0, 3, 0]
    with pytest.raises(ValueError, match="likeness=0"):
        near_duplicates(texts, likeness=0)


def test_one_answer_is_learned_for_all_of_a_group_and_costs_one_label():
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(60, 2))
    X, groups = np.repeat(centres, 4, axis=0), np.repeat(np.arange(60), 4)
    y = np.repeat(np.hypot(*centres.T) > 1.5, 4)
    asked: list[int] = []

    def oracle(row: int) -> bool:
        asked.append(row)
        return y[row]

    model = LASVM(C=10.0, gamma=0.5)
    steps = list(label_pool(model, X, oracle, alike=groups, stopping=MaxLabels(60), threshold="gmean"))
    assert len(steps) == len(asked) == 60
    assert len({groups[row] for row in asked}) == 60  # no two of one group
    assert steps[-1].n_labels == 240
    assert (model.predict_many(X) == y).all()
    with pytest.raises(ValueError, match="an integer for each of the 240 rows"):
        label_pool(model, X, oracle, alike=groups[:-1])


def test_near_duplicates_make_no_bound_smaller():
    """Half of the pool are negatives in groups.  What is left when they are gone holds twice as many positives."""
    loop = LabellingLoop(ArrayPool(np.arange(20.0)[:, np.newaxis]), seeds=0, explore=1.0, n_open=1)

    def ask() -> int:
        (question,) = [action.question for action in loop.choose(LASVM(), 0) if hasattr(action, "question")]
        return question.key

    first = ask()
    loop.answer(Answer(first, "label", False, "ann", 0), 0, 0)
    before = loop.missed()
    others = [key for key in range(20) if key != first][:5]
    for key in others:
        loop.answer(Answer(key, "label", False, "ann", 0, is_alike=True), 0, 0)
    after = loop.missed()
    assert after.n_audited == before.n_audited == 1
    assert after.at_most == before.at_most
    assert after.n_unlabelled == before.n_unlabelled - 5
    assert loop.counts.alike == 5
    assert set(loop.labels(alike=False)) == {first}
    assert set(loop.labels()) == {first, *others}
