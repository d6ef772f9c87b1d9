"""The instructions' Markdown: what becomes marked, and that nothing else does."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamsvm.connectors.labelling.web.markdown import parse


@pytest.mark.parametrize(
    ("text", "blocks"),
    [
        ("", []),
        (" \n\n", []),
        ("one\ntwo\n\nthree", [["p", ["one two"]], ["p", ["three"]]]),
        ("# Title\ntext", [["h", 1, ["Title"]], ["p", ["text"]]]),
        ("### Sub ##", [["h", 3, ["Sub"]]]),
        ("####### seven", [["p", ["####### seven"]]]),
        ("#no", [["p", ["#no"]]]),
        ("text\n- a\n- b\n  goes on\n\n* c", [["p", ["text"]], ["ul", [["a"], ["b goes on"]]], ["ul", [["c"]]]]),
        ("1. a\n2) b", [["ol", [["a"], ["b"]]]]),
        ("a **b *c* d** e", [["p", ["a ", ["strong", ["b ", ["em", ["c"]], " d"]], " e"]]]),
        ("`**a**` b", [["p", [["code", "**a**"], " b"]]]),
        ("2 * 3 * 4, a*b*c, ** x **", [["p", ["2 * 3 * 4, a*b*c, ** x **"]]]),
        ("[a](https://b.example/c?d=1)", [["p", [["a", "https://b.example/c?d=1", ["a"]]]]]),
        ("[a](mailto:a@b.example)", [["p", [["a", "mailto:a@b.example", ["a"]]]]]),
        ("[a](javascript:alert(1))", [["p", ["[a](javascript:alert(1))"]]]),
        (
            "[a](//b.example) ![c](https://d.example)",
            [["p", ["[a](//b.example) !", ["a", "https://d.example", ["c"]]]]],
        ),
        ("<b onclick=x>a</b> &amp;", [["p", ["<b onclick=x>a</b> &amp;"]]]),
        ("a\r\n\r\nb", [["p", ["a"]], ["p", ["b"]]]),
    ],
)
def test_blocks(text, blocks):
    assert parse(text) == blocks


MARKED = st.lists(st.sampled_from([*"ab *`[]()#-1.<>\n", "**", "](", "https://a.b", "javascript:"]), max_size=40)


def addresses(tree):
    for part in tree:
        if isinstance(part, list):
            if part[:1] == ["a"] and len(part) == 3 and isinstance(part[2], list):
                yield part[1]
            yield from addresses(part)


@given(MARKED.map("".join))
def test_whatever_is_written_only_such_addresses_become_links(text):
    blocks = parse(text)
    assert json.loads(json.dumps(blocks)) == blocks
    assert all(block[0] in ("h", "p", "ul", "ol") for block in blocks)
    assert all(address.startswith(("http://", "https://", "mailto:")) for address in addresses(blocks))
