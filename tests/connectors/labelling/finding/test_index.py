"""The index of events, beside one that looks at every event."""

import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamsvm.connectors.labelling.finding import numbers
from streamsvm.connectors.labelling.finding.index import EventIndex
from streamsvm.connectors.labelling.finding.query import BadQuery, parse
from streamsvm.connectors.records.people.questions import FOUND, Question

WORDS = ("prize", "free", "noon", "München", "don't")
COUNTRIES = ("FR", "DE", "New York")


def event(number, x=None, **fields):
    return Question(f"q{number}", f"e{number}", 0, x or {}, fields, 0.0, FOUND, 0, 0)


def found(index, text, n=10**6, before=None):
    return [question.query_id for question in index.search(parse(text), before, n).questions]


@pytest.fixture
def index():
    index = EventIndex(8)
    yield index
    index.close()


def slowly(events, text):
    """The same by looking at each event; the newest first."""
    words, excluded, conditions = parse(text)

    def holds(word, shown):
        return bool(re.search(rf"\b{word.strip('*').strip(chr(34))}" + ("" if "*" in word else r"\b"), shown.lower()))

    def fits(one):
        shown = "\n".join(one.event.values())
        if not all(holds(word, shown) for word in words) or any(holds(word, shown) for word in excluded):
            return False
        values = {**one.event, **one.x}
        for name, comparison, wanted in conditions:
            value = values.get(name)
            if comparison == "=" and str(value) != wanted:
                return False
            if comparison == "!=" and str(value) == wanted:
                return False
            if comparison == ">" and not (value is not None and value > float(wanted)):
                return False
        return True

    return [one.query_id for one in reversed(events) if fits(one)]


@given(st.integers(0, 2**32))
def test_it_finds_what_a_look_at_every_event_finds(seed):
    rng, index = random.Random(seed), EventIndex(8)
    events = []
    for number in range(rng.randrange(1, 20)):
        text = " ".join(rng.choices(WORDS[:3], k=3))
        x = {"amount": float(rng.randrange(4))} if rng.random() < 0.8 else {}
        events.append(event(number, x, text=text, country=rng.choice(COUNTRIES)))
    index.add([event(0, {"amount": 0.0}, country="FR"), *events])  # of the two with one id, the newest holds
    queries = ["", "prize", "prize noon", "-free", "fr*", 'country = "New York"', "country != FR prize"]
    names = {name for one in events for name in one.x}
    queries += ["amount > 1", "amount > 1 country = DE -noon"] if names else []
    for text in queries:
        assert found(index, text) == slowly(events[-8:], text)
    assert len(index) == min(8, len(events))
    index.close()


def test_pages_follow_each_other(index):
    index.add([event(number, text="prize" if number % 2 else "noon") for number in range(8)])
    first = index.search(parse("prize"), None, 3)
    assert ([one.id for one in first.questions], first.n_found) == (["e7", "e5", "e3"], 4)
    last = index.search(parse("prize"), first.next, 3)
    assert ([one.id for one in last.questions], last.n_found, last.next) == (["e1"], 4, None)


def test_words_and_values_as_people_write_them(index):
    index.add([event(1, text="Don't miss: MÜNCHEN wins", place="München", sure=True, price="12.50")])
    for text in ("munchen", "don't", "wins -prize", "place = münchen", "sure = true", "price > 12", "price = 12.5"):
        assert found(index, text) == ["q1"], text
    for text in ("munch", "place = mün", "price < 12", "sure = false"):
        assert found(index, text) == [], text


def test_a_name_that_no_event_has_is_refused(index):
    with pytest.raises(BadQuery, match="no event has a value 'amout', or any other"):
        found(index, "amout > 1")
    index.add([event(1, {"amount": 1.0}, country="FR")])
    with pytest.raises(BadQuery, match="no event has a value 'amout'; there are country, amount"):
        found(index, "amout > 1")
    with pytest.raises(BadQuery, match="the values of country are texts"):
        found(index, "country > 1")


def test_an_image_inside_the_event_has_no_words(index):
    index.add([event(1, image="data:image/png;base64,prize")])
    assert found(index, "prize") == []


def test_texts_are_alike_by_their_rare_words(index):
    texts = ["the prize is yours", "the sun", "you win the prize now", "the moon", "the rain"]
    index.add([event(number, {"a": float(number)}, text=text) for number, text in enumerate(texts)])
    assert index.like("q0", 3).questions[0].query_id == "q2"
    assert index.like("q9", 3) is None


def test_numbers_are_alike_by_distance_in_standard_deviations(index):
    index.add([event(number, {"a": a, "b": b}) for number, (a, b) in enumerate([(0, 0), (900, 0), (0, 3), (0, 1)])])
    assert [one.query_id for one in index.like("q0", 8).questions] == ["q3", "q1", "q2"]
    index.add([event(4, {"a": 0.0, "b": 0.1})])  # a new one counts at once
    assert [one.query_id for one in index.like("q0", 1).questions] == ["q4"]


def test_memory_has_a_bound(monkeypatch, index):
    monkeypatch.setattr(numbers, "MOST_NAMES", 2)
    index.add([event(number, {f"v{number}": 1.0}, text="noon") for number in range(50)])
    assert len(index) == 8
    assert found(index, "noon") == [f"q{number}" for number in range(49, 41, -1)]
    assert found(index, "v0 > 0") == []  # this event has gone
    with pytest.raises(BadQuery):
        found(index, "v5 > 0")  # beyond the first names


def test_every_event_can_be_drawn(index):
    assert index.draw() is None
    index.add([event(number, amount=float(number)) for number in range(20)])
    assert {index.draw().query_id for _ in range(500)} == {f"q{number}" for number in range(12, 20)}
