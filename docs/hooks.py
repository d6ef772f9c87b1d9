"""What MkDocs is told beside mkdocs.yml: files from outside docs/, links to them, and pages made from the code.

On a page, links go to files of the repository, so that they work where it is browsed. Here they become links to the
pages of the site. After the build, the search index is checked for words that people look for.
"""

import json
import posixpath
import re
from pathlib import Path
from typing import Any

import live
import reference
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
PAGES = [
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "benchmarks/README.md",
    "benchmarks/evidence.md",
    "benchmarks/papers.md",
]
MADE = {
    "<!-- the commands -->": reference.commands,
    "<!-- the configuration -->": reference.configuration,
    "<!-- the live model -->": live.demo,
}
WIDE = ("benchmarks/", "examples/", "CONTRIBUTING.md")  # their code and tables need the room of the table of contents
FOUND = {  # a word that people search for, and the page with a heading that has it
    "image": "events.html",
    "text": "events.html",
    "series": "events.html",
    "multiclass": "multiclass.html",
    "drift": "drift.html",
    "imbalanced": "imbalanced.html",
    "pandas": "learning.html",
    "numpy": "learning.html",
    "rare": "labelling.html",
    "LabellingLoop": "api/active.html",  # a page without the names of `__all__` is empty
    "shares_": "api/streamsvm.html",  # of a base of `Mixture`
}
LINK = re.compile(r"(?<=\]\()(?P<path>[^)#\s:]+)")


def on_files(files: Files, config: Any) -> Files:
    """Add what is not in docs/: the README as home, a few pages, the benchmarks' notes with pictures, the examples."""
    notes = [path for path in sorted((ROOT / "benchmarks/notes").iterdir()) if path.suffix in (".md", ".png")]
    for path in [*(ROOT / name for name in PAGES), *notes]:
        files.append(File.generated(config, _in_site(path.relative_to(ROOT).as_posix()), abs_src_path=str(path)))
    for path in _examples():
        language = path.suffix.removeprefix(".")
        page = f"# {path.name}\n\n```{language}\n{path.read_text(encoding='utf-8')}```\n"
        files.append(File.generated(config, _in_site(path.relative_to(ROOT).as_posix()), content=page))
    return files


def _examples() -> list[Path]:
    paths = [*(ROOT / "examples").iterdir(), *(ROOT / "examples/follow").iterdir()]
    return [path for path in sorted(paths) if path.suffix in (".py", ".toml", ".java", ".html")]


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Fill in what is made from the code, and turn links to files of the repository into links within the site."""
    for mark, made in MADE.items():
        if mark in markdown:
            markdown = markdown.replace(mark, made())
    own = page.file.src_uri
    if own.startswith(WIDE):
        page.meta["hide"] = ["toc"]
        page.meta["search"] = {"boost": 0.2}  # below the guides
    is_in_docs = (ROOT / "docs" / own).is_file()
    folder = posixpath.dirname(f"docs/{own}" if is_in_docs else own)

    def moved(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(folder, link["path"]))
        if not (ROOT / target).is_file():
            return link["path"]  # not ours, or broken, which MkDocs finds
        return posixpath.relpath(_in_site(target), posixpath.dirname(own) or ".")

    return LINK.sub(moved, markdown)


def on_post_build(config: Any) -> None:
    """Check that the search has a heading for each word of `FOUND`."""
    index = json.loads(Path(config["site_dir"], "search", "search_index.json").read_text(encoding="utf-8"))
    for word, page in FOUND.items():
        titles = [entry["title"] for entry in index["docs"] if entry["location"].partition("#")[0] == page]
        if not any(re.search(rf"\b{word}", title, re.IGNORECASE) for title in titles):
            raise PluginError(f"a search for {word!r} misses {page}: none of its headings has the word")


def _in_site(path: str) -> str:
    """Where the site has a file of the repository."""
    if path == "README.md":
        return "index.md"
    if path.startswith("examples/"):
        return f"examples/{Path(path).name.replace('.', '-')}.md"
    return path.removeprefix("docs/")
