"""What one level of processors computes: the same bits everywhere."""

import os
import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "deploy.md").read_text(encoding="utf-8")
TOLD = dict(re.findall(r"^\| `(x86-64-v\d)` \| `([0-9a-f]{64})` \|$", PAGE, re.MULTILINE))


def test_the_page_has_a_digest_for_each_level():
    assert list(TOLD) == ["x86-64-v2", "x86-64-v3", "x86-64-v4"]


@pytest.mark.skipif(os.environ.get("STREAMSVM_CPU") not in TOLD, reason="`make portability-test` chooses a level")
def test_a_level_computes_the_bits_of_the_page():
    (example,) = re.findall(r"```python\n((?:(?!```).)*digest\(\).*?)```", PAGE, re.DOTALL)
    found = {}
    exec(example, found)
    assert found["model"].digest() == TOLD[os.environ["STREAMSVM_CPU"]]
