"""Every benchmark has a short version, which `make bench` runs, and a place in their table of contents."""

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
APART = {"datasets", "pages", "evidence", "daemon", "state"}  # data, what renews pages, and what needs a broker
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


def rows_of_evidence():
    text = (ROOT / "benchmarks" / "evidence.md").read_text(encoding="utf-8")
    return [line.strip("| ").split(" | ") for line in text.splitlines() if re.match(r"\| E\d+ \|", line)]


@pytest.mark.parametrize("row", rows_of_evidence(), ids=lambda row: row[0])
def test_a_row_has_a_verdict_and_the_papers_figure_beside_a_denial(row):
    _, _, verdict, figures, *command = row
    assert re.match("yes|in part|not confirmed", verdict)
    assert len(command) == 1
    assert " / " in figures or not verdict.startswith("not confirmed")


def test_rows_of_evidence_have_the_figures_of_their_tables(evidence):
    figures = evidence.figures()
    assert len(figures) > 100
    assert [figure for figure in figures if figure.quoted != figure.table] == []


def test_a_stale_figure_is_renewed(evidence, tmp_path, monkeypatch, capsys):
    page = tmp_path / "evidence.md"
    monkeypatch.setattr(evidence, "HERE", tmp_path)
    monkeypatch.setattr(evidence, "EVIDENCE", page)
    table = "| | a | b, c |\n|---|---|---|\n| **x** `y` | 1 / 2 | 3, 4 |\n| z | 0.5 | 5, 6 |\n"
    (tmp_path / "papers.md").write_text(f"# One table\n{table}## Another: `one`\n{table}")
    page.write_text(
        '| E1 | [9](papers.md#one-table "z: a"), [9](papers.md#another-one "z: b, c [2]"), '
        '[9](papers.md#one-table "least: a") |\n'
    )
    evidence.main()
    assert [figure.table for figure in evidence.figures()] == ["0.5", "6", "0.5"]
    assert "z: a: 9 -> 0.5" in capsys.readouterr().out
    page.write_text('[9](papers.md#one-table "w: a")')
    with pytest.raises(ValueError, match="has 0 cells 'w: a', not one"):
        evidence.figures()


def columns_without_figures(text):
    """The titles of the columns that are empty, or have dashes only, in the tables of a page."""
    found = []
    for table in re.findall(r"(?:^ *\|.*\n)+", text, re.MULTILINE):
        titles, _, *rows = [re.split(r"(?<!\\)\|", line.strip())[1:-1] for line in table.splitlines()]
        columns = zip(titles, *rows, strict=True)
        found += [title.strip() for title, *cells in columns if not re.search(r"[^-,;\s]", "".join(cells))]
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_table_has_a_column_without_figures(page):
    assert columns_without_figures(page.read_text(encoding="utf-8")) == []


def test_a_column_of_dashes_is_noticed():
    table = "| set | pass | fit | SVC |\n| --- | --: | --- | --- |\n| a | 1.0 | -; - | |\n| b | - | - | |\n"
    assert columns_without_figures(table) == ["fit", "SVC"]


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


@pytest.fixture
def evidence(monkeypatch):
    """benchmarks/evidence.py."""
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    return importlib.import_module("evidence")


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


def test_a_whole_name_stands_for_itself_only(pages, monkeypatch):
    commands = ["a.py --parts steps", "a.py --parts steps --full", "b.py"]
    monkeypatch.setattr(pages, "places", lambda: [pages.Place(Path(), name, "", "") for name in commands])
    assert pages.chosen(["a.py --parts steps"]) == commands[:1]
    assert pages.chosen(["a.py"]) == commands[:2]


@pytest.fixture
def moa(monkeypatch):
    """benchmarks/shared/moa.py."""
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    return importlib.import_module("shared.moa")


def test_moa_reads_every_digit_of_the_records_in_their_order(moa, tmp_path):
    moa.write_arff([({"a": 0.1 + 0.2, "b": 1}, "no"), ({"b": True, "a": -1e-9}, "yes")], tmp_path / "a.arff")
    assert (tmp_path / "a.arff").read_text() == (
        "@relation records\n@attribute f0 numeric\n@attribute f1 numeric\n@attribute class {0,1}\n@data\n"
        "0.30000000000000004,1.0,0\n-1e-09,1.0,1\n"
    )


def test_a_learner_of_moa_that_fails_is_no_figure(moa, tmp_path, monkeypatch):
    monkeypatch.setattr(moa, "JAVA", ["echo"])
    with pytest.raises(RuntimeError, match=r"ARF of moa\.jar printed no table"):
        list(moa.outcomes(Path("moa.jar"), [({"a": 1.0}, True), ({"a": 2.0}, False)]))
