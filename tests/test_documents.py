"""Every Python example of the README runs as it stands, each on its own and in an empty folder."""

import re
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"
TEXT = README.read_text(encoding="utf-8")
BLOCKS = [
    (TEXT[: match.start(1)].count("\n"), match[1]) for match in re.finditer(r"```python\n(.*?)```", TEXT, re.DOTALL)
]


def test_there_are_examples():
    assert len(BLOCKS) >= 4


@pytest.mark.parametrize(("line", "code"), BLOCKS, ids=[f"line{line + 1}" for line, _ in BLOCKS])
def test_example_runs(line, code, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(compile("\n" * line + code, str(README), "exec"), {"__name__": "readme"})
