"""What people type to find events."""

import pytest

from streamsvm.connectors.labelling.finding.query import MOST, BadQuery, Condition, parse


@pytest.mark.parametrize(
    ("text", "words", "excluded", "conditions"),
    [
        ("", (), (), ()),
        ("prize", ('"prize"',), (), ()),
        ("prize free*", ('"prize"', '"free"*'), (), ()),
        ('"free entry" -meeting', ('"free entry"',), ('"meeting"',), ()),
        ('-"see you"', (), ('"see you"',), ()),
        ("amount>100", (), (), (("amount", ">", "100"),)),
        ('"from address" != "New York" x', ('"x"',), (), (("from address", "!=", "New York"),)),
        ("a.b <= -1e3", (), (), (("a.b", "<=", "-1e3"),)),
        ("--- ... *", (), (), ()),
        ("OR NEAR(a", ('"OR"', '"NEAR(a"'), (), ()),  # no language of SQLite's
    ],
)
def test_what_is_typed(text, words, excluded, conditions):
    assert parse(text) == (words, excluded, tuple(Condition(*condition) for condition in conditions))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("amount > high", "amount > high: > needs a number"),
        ('"free entry', "a quotation mark"),
        ("a" * (MOST + 1), f"at most {MOST}"),
    ],
)
def test_what_is_no_query_is_refused_with_a_reason(text, why):
    with pytest.raises(BadQuery, match=why):
        parse(text)
