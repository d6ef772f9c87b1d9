"""The README and docs/: their Python runs as it stands, their configurations load, their links lead somewhere.

A block of Python runs on its own, in an empty folder.
"""

import argparse
import importlib.util
import re
from dataclasses import fields
from pathlib import Path

import pytest

from streamsvm.connectors.commands import cli
from streamsvm.connectors.settings.sections import SECTIONS, load

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


@pytest.mark.parametrize(("page", "line", "code"), blocks("python"))
def test_python_runs(page, line, code, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(compile("\n" * line + code, str(page), "exec"), {"__name__": "document"})


@pytest.mark.parametrize(("page", "line", "text"), blocks("toml"))
def test_a_configuration_loads(page, line, text, tmp_path):
    (tmp_path / "app.toml").write_text(text)
    load(tmp_path / "app.toml", {})


@pytest.mark.parametrize("page", [*PAGES, ROOT / "benchmarks" / "README.md"], ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    links = re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8"))
    assert [link for link in links if "://" not in link and not (page.parent / link).is_file()] == []


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


def test_the_reference_has_every_option(reference):
    text = reference.commands()
    (subcommands,) = (action for action in cli.make_parser()._actions if isinstance(action, argparse._SubParsersAction))
    for name, command in subcommands.choices.items():
        part = text.partition(f"## {name}\n")[2].partition("\n## ")[0]
        options = [option for action in command._actions[1:] for option in action.option_strings]  # 0: help
        assert [option for option in options if option not in part] == []
        assert f"usage: streamsvm {name}" in part
