"""The README and docs/: their Python prints what they say, their configurations load, their links lead somewhere.

A block of Python runs on its own, in an empty folder. A block of text right after it is its output. Some outputs move
with the processor, because a model that forgets amplifies differences of rounding. A comment before these says so.
"""

import argparse
import importlib.util
import json
import math
import re
from dataclasses import fields
from pathlib import Path

import pytest

from streamsvm.connectors.commands import cli
from streamsvm.connectors.settings.loading import load
from streamsvm.connectors.settings.sections import SECTIONS

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(language):
    """Page, line and text of each fenced block, with a name for each."""
    found = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for match in re.finditer(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
            line = text[: match.start(1)].count("\n")
            found.append(pytest.param(page, line, match[1], id=f"{page.name}-line{line + 1}"))
    return found


MOVES = "<!-- these figures move with the processor's rounding -->"
OUTPUT = re.compile(rf"^```python\n([^`]*?)^```\n\n({MOVES}\n\n)?```text\n(.*?)^```", re.DOTALL | re.MULTILINE)


def outputs():
    """The output of each block of Python that a block of text follows, and whether it moves; by page and line."""
    found = {}
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for match in OUTPUT.finditer(text):
            found[page, text[: match.start(1)].count("\n")] = match[3], match[2] is not None
    return found


NUMBER = re.compile(r"(\d+(?:,\d{3})*(?:\.\d+)?(?:e[+-]?\d+)?)")


def is_printed(expected, printed, moves=False):
    """Whether two texts are equal but for rounding: a processor may decide an example or two in another way."""
    relative, absolute = (0.25, 0.05) if moves else (0.02, 0.02)
    if moves:  # an interval without width is not printed
        expected, printed = (re.sub(r" \([^()]* to [^()]*\)", "", text) for text in (expected, printed))
    pairs = list(zip(NUMBER.split(expected.strip()), NUMBER.split(printed.strip()), strict=False))
    numbers, texts = pairs[1::2], pairs[::2]
    values = [[float(number.replace(",", "")) for number in pair] for pair in numbers]
    close = all(math.isclose(a, b, rel_tol=relative, abs_tol=absolute) for a, b in values)
    return len(NUMBER.split(expected)) == len(NUMBER.split(printed)) and close and all(a == b for a, b in texts)


@pytest.fixture(scope="module")
def reference():
    """What makes pages from the code."""
    spec = importlib.util.spec_from_file_location("reference", ROOT / "docs" / "reference.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_there_are_examples():
    assert len(blocks("python")) >= 12
    assert len(blocks("toml")) >= 3
    assert len(outputs()) >= 12


SHOWN = outputs()


@pytest.mark.long
@pytest.mark.parametrize(("page", "line", "code"), blocks("python"))
def test_python_runs_and_prints_what_the_page_says(page, line, code, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    exec(compile("\n" * line + code, str(page), "exec"), {"__name__": "document"})
    printed = capsys.readouterr().out
    shown, moves = SHOWN.get((page, line), (printed, False))
    assert is_printed(shown, printed, moves), f"the page says\n{shown}\nand the code prints\n{printed}"


def test_another_number_or_text_is_noticed():
    assert is_printed("Accuracy: 89.53%\n", "Accuracy: 89.55%\n")
    assert not is_printed("Accuracy: 89.53%", "Accuracy: 85.53%")
    assert not is_printed("Accuracy: 89.53%", "ROCAUC: 89.53%")
    assert not is_printed("Accuracy: 89.53%", "Accuracy: 89.53%\nROCAUC: 95.22%")
    assert is_printed("later 0.15, 429", "later 0.18, 437", moves=True)
    assert not is_printed("later 0.15, 429", "later 0.25, 437", moves=True)
    assert is_printed("PRBEP 90.9% (90.9% to 94.3%); 300", "PRBEP 90.3%; 300", moves=True)


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "heading", "has_settings"),
    [("daemon.md", "# ", True), ("table.md", "# ", False), ("guarantee.md", "## In the trainer", True)],
)
def test_the_first_round_prints_what_the_page_says(tmp_path, monkeypatch, capsys, name, heading, has_settings):
    _, _, page = (ROOT / "docs" / name).read_text(encoding="utf-8").partition(heading)
    page = page.partition("\n## ")[0] if heading.startswith("## ") else page  # one chapter
    data, settings, session = (
        "".join(re.findall(rf"^```{language}\n(.*?)^```", page, re.DOTALL | re.MULTILINE)[:most])
        for language, most in (("python", 1), ("toml", 1), ("console", None))
    )
    monkeypatch.chdir(tmp_path)
    exec(data, {})
    if has_settings:
        Path("app.toml").write_text(settings)
    commands = re.findall(r"^\$ streamsvm (.*)\n((?:[^$].*\n)*)", session, re.MULTILINE)
    assert len(commands) >= 4
    moves = f"{MOVES}\n\n```console" in page
    for command, shown in commands:
        assert cli.main(command.split()) == 0
        printed = capsys.readouterr().out
        assert is_printed(without_time(shown), without_time(printed), moves), f"{command} prints\n{printed}"


def without_time(text):
    """What a command prints, without seconds and digests."""
    text = re.sub(r"^model digest of .*\n", "", text, flags=re.MULTILINE)
    return re.sub(r" +[\d.]+  [0-9a-f]{12}$", "", text, flags=re.MULTILINE)


@pytest.mark.parametrize(("page", "line", "text"), blocks("json"))
def test_json_is_json(page, line, text):
    json.loads(text)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_code_is_wider_than_its_column(page):
    """The site shows 100 characters at 1280 px."""
    wide = [
        line
        for block in re.findall(r"^```.*?^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
        for line in block.splitlines()
        if len(line) > 100
    ]
    assert wide == []


@pytest.mark.parametrize(("page", "line", "text"), blocks("toml"))
def test_a_configuration_loads(page, line, text, tmp_path):
    (tmp_path / "app.toml").write_text(text)
    load(tmp_path / "app.toml", {})


def places(page):
    """The anchors of a page's headings."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", [*PAGES, *(ROOT / "benchmarks").rglob("*.md")], ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    links = re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]+))?[^)]*\)", page.read_text(encoding="utf-8"))
    files = [(page.parent / link if link else page, place) for link, place in links if "://" not in link]
    assert [file for file, _ in files if not file.is_file()] == []
    assert [(file.name, place) for file, place in files if place and place not in places(file)] == []


def test_every_example_is_listed():
    text = (ROOT / "docs" / "examples.md").read_text(encoding="utf-8")
    files = [path for path in (ROOT / "examples").iterdir() if path.suffix in (".py", ".toml")]
    assert [path.name for path in files if f"(../examples/{path.name})" not in text] == []


def test_the_reference_has_every_key(reference):
    text = reference.configuration()
    for name, section in SECTIONS.items():
        part = text.partition(f"## [{name}]\n")[2].partition("\n## ")[0]
        rows = dict(re.findall(r"^\| `(\w+)` \| .* \| (.*) \|$", part, re.MULTILINE))
        assert rows.keys() == {key.name for key in fields(section)}
        assert all(rows.values())


def test_every_word_that_a_setting_takes_is_explained_and_shown():
    example = (ROOT / "examples" / "app.toml").read_text(encoding="utf-8")
    silent = []
    for section in (section for name, section in SECTIONS.items() if name != "model"):  # whose checks ask the learners
        for key in (key for key in fields(section) if isinstance(key.default, str) and "check" in key.metadata):
            wanted = key.metadata["check"]("?") or ""
            words = re.findall(r"'([^',]+)'", wanted) if wanted.startswith("one of ") else []
            texts = {"its docstring": section.__doc__, "app.toml": example}
            silent += [
                f"{key.name}: {word!r} in {where}"
                for word in words
                for where in texts
                if f'"{word}"' not in texts[where]
            ]
    assert not silent, "\n".join(silent)


def test_the_reference_has_every_option(reference):
    text = reference.commands()
    (subcommands,) = (action for action in cli.make_parser()._actions if isinstance(action, argparse._SubParsersAction))
    for name, command in subcommands.choices.items():
        part = text.partition(f"## {name}\n")[2].partition("\n## ")[0]
        options = [option for action in command._actions[1:] for option in action.option_strings]  # 0: help
        assert [option for option in options if option not in part] == []
        assert f"usage: streamsvm {name}" in part
