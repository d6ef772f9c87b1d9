"""Every benchmark has a short version, which `make bench` runs, and a place in their table of contents."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
APART = {"datasets", "pages", "daemon", "state"}  # data, what renews the pages, and what needs a broker
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "benchmarks").rglob("*.md"))]
NAMES = sorted(path.stem for path in (ROOT / "benchmarks").glob("*.py") if path.stem not in APART)


def test_make_runs_each():
    (listed,) = re.findall(r"^BENCHMARKS \?= (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert sorted(listed.split()) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_it_has_a_short_version_and_is_listed(name):
    assert '"--quick"' in (ROOT / "benchmarks" / f"{name}.py").read_text(encoding="utf-8")
    assert f"{name}.py" in (ROOT / "benchmarks" / "README.md").read_text(encoding="utf-8")


def test_each_experiment_of_the_papers_has_a_row():
    text = (ROOT / "benchmarks" / "evidence.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| (E\d+) \|", text, re.MULTILINE) == [f"E{n}" for n in range(1, 57)]


def test_no_figure_of_the_papers_is_called_unknown():
    pages = [*(ROOT / "benchmarks").rglob("*.md"), *(ROOT / "benchmarks").rglob("*.py")]
    phrases = ("not known to us", "quoted from memory")
    assert [page.name for page in pages if any(words in page.read_text(encoding="utf-8") for words in phrases)] == []


def test_marked_places_of_the_pages_name_benchmarks():
    text = "".join(page.read_text("utf-8") for page in PAGES)
    marks = re.findall(r"<!-- (printed by: (\S+).*?|end(?:: .*?)?) -->", text)
    assert marks
    assert [mark.startswith("printed") for mark, _ in marks] == [True, False] * (len(marks) // 2)
    assert {script for _, script in marks if script} <= {f"{name}.py" for name in [*NAMES, "pages"]}
