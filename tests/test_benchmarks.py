"""Every benchmark has a short version, which `make bench` runs, and a place in their table of contents."""

import importlib
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


@pytest.fixture
def pages(monkeypatch):
    """benchmarks/pages.py."""
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    return importlib.import_module("pages")


def test_a_command_fills_its_places_and_no_others(pages, tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "<!-- printed by: a.py > times -->\nold\n<!-- end: then -->\n"
        "<!-- printed by: a.py -->\n```\nold\n```\n<!-- end -->\n"
        "<!-- printed by: a.py --full -->\nold\n<!-- end: then -->\n"
    )
    output = "## times\n\n| 1 |\n\n## errors\n\n| 2 |\n"
    pages.fill(page, "a.py", lambda title: pages.part(output, title), "now")
    assert page.read_text() == (
        "<!-- printed by: a.py > times -->\n\n| 1 |\n\n<!-- end: now -->\n"
        f"<!-- printed by: a.py -->\n```\n{output}```\n<!-- end: now -->\n"
        "<!-- printed by: a.py --full -->\nold\n<!-- end: then -->\n"
    )


def test_an_output_without_the_heading_is_refused(pages):
    with pytest.raises(SystemExit, match="no heading 'sizes'"):
        pages.part("## times\n\n| 1 |\n", "sizes")


def test_a_whole_name_stands_for_itself_only(pages):
    assert pages.chosen(["forget.py loo"]) == ["forget.py loo"]
    assert "gap_family.py --parts steps --full" not in pages.chosen(["gap_family.py --parts steps"])
    assert len(pages.chosen(["gap_family.py"])) > 3
