"""Which room may open which door: read from the import statements of every file."""

import ast
import functools
import re
import subprocess
import sys
import tomllib
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import NamedTuple

import pytest

from streamsvm.core.compiling._jit import COMPILED_ROOMS

ROOT = Path(__file__).parents[1]
PRODUCT = sorted(path for folder in ("streamsvm", "connectors") for path in (ROOT / folder).rglob("*.py"))
EVERYTHING = PRODUCT + sorted(
    path for folder in ("tests", "examples", "benchmarks") for path in (ROOT / folder).rglob("*.py")
)

# From the bottom up: a room imports from its own floor and below.
FLOORS = [
    {"_version", "core"},
    {"batch"},
    {"online"},
    {"ranking"},
    {"metrics"},
    {"validation"},
    {"active"},
    {"preprocessing", "estimators", "features"},
    {"alarms", "conformal"},
    {"sklearn_api", "loading", "export"},
    {"streamsvm"},  # the package itself, which names what is public
    {"connectors"},
]

# The floors of connectors/: a folder imports from itself and from lower floors; folders of one floor stay apart.
CONNECTORS = [
    {"runtime"},
    {"logs"},
    {"records"},
    {"settings"},
    {"trainer"},
    {"scorer"},
    {"labelling", "report"},
    {"merger"},
    {"commands"},
]

# Third-party packages that only these rooms or files may import.
RESERVED = {
    "numba": {"core/compiling"},
    "llvmlite": {"core/compiling"},
    "cupy": {"core/device/gpu"},
    "river": {
        *("active", "alarms", "conformal", "validation", "estimators", "features", "preprocessing", "metrics"),
        *("export", "connectors"),
    },
    "sklearn": {"sklearn_api"},
    "kafka": {"connectors/logs/kafka"},
    "confluent_kafka": {"connectors/logs/rdkafka"},
    "matplotlib": {"connectors/report"},
    "pyarrow": {"connectors/records/parquet"},
    "google": {"connectors/records/formats/registry/protobuf"},
    "PIL": {"connectors/commands/label_images"},
    "joblib": {"validation"},
    "onnx": {"export/onnx"},
    "obstore": {"connectors/trainer/state/remote/objects"},
    "safetensors": {"features/static_embedding"},
    "tokenizers": {"features/static_embedding"},
}
LAZY = {"PIL", "cupy", "google", "joblib", "matplotlib", "obstore", "onnx", "pyarrow", "safetensors", "tokenizers"}


class Import(NamedTuple):
    """One imported module by its absolute name, and whether it is loaded together with its file."""

    module: str
    at_once: bool
    relative: bool


def module_name(path):
    """Absolute name of a file's module: connectors/ is installed as streamsvm.connectors."""
    parts = list(path.relative_to(ROOT).with_suffix("").parts)
    if parts[-1] == "__init__":
        parts.pop()
    return ".".join(["streamsvm", *parts] if parts[0] == "connectors" else parts)


@functools.cache
def tree_of(path):
    return ast.parse(path.read_text(encoding="utf-8"))


@functools.cache
def imports_of(path):
    tree = tree_of(path)
    inside = {id(node) for f in ast.walk(tree) if isinstance(f, ast.FunctionDef) for node in ast.walk(f)}
    package = module_name(path).split(".")
    if path.name != "__init__.py":
        package.pop()
    found = []
    for node in ast.walk(tree):
        at_once = id(node) not in inside
        if isinstance(node, ast.Import):
            found += [Import(alias.name, at_once, False) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) + 1 - node.level] if node.level else []
            start = ".".join(base + ([node.module] if node.module else []))
            found += [Import(f"{start}.{alias.name}", at_once, node.level > 0) for alias in node.names]
    return found


def room(module):
    """The room of one of our own modules or names, or None: streamsvm.online.lasvm.PROCESS is in 'online'."""
    parts = module.split(".")
    if parts[0] != "streamsvm":
        return None
    return parts[1] if len(parts) > 1 and parts[1] in set().union(*FLOORS) else "streamsvm"


def floor(name):
    return next(i for i, rooms in enumerate(FLOORS) if name in rooms)


def where(path):
    return path.relative_to(ROOT).as_posix()


def test_no_room_imports_from_a_higher_one():
    for path in PRODUCT:
        own = room(module_name(path))
        used = {item.module: room(item.module) for item in imports_of(path)}
        too_high = {module for module, other in used.items() if other and floor(other) > floor(own)}
        assert not too_high, f"{where(path)} is in {own!r}, below what it imports"


def test_every_file_belongs_to_a_room():
    """A new room has to be put into FLOORS, or it would pass for the package itself."""
    for path in PRODUCT:
        assert room(module_name(path)) != "streamsvm" or path == ROOT / "streamsvm" / "__init__.py", where(path)


def test_outside_packages_stay_in_their_rooms():
    for path in PRODUCT:
        inside = where(path).removeprefix("streamsvm/").removesuffix(".py")
        rooms = {inside, *map(str, Path(inside).parents)}
        for item in imports_of(path):
            package = item.module.split(".")[0]
            if package in RESERVED:
                assert RESERVED[package] & rooms, f"{where(path)} must not import {package}"
                assert not (package in LAZY and item.at_once), f"{where(path)} must import {package} where it is used"


@pytest.mark.long
def test_connectors_go_by_their_installed_name():
    """From the root, `import connectors` works by accident and makes a second copy of every class."""
    for path in EVERYTHING:
        for item in imports_of(path):
            assert item.module.split(".")[0] != "connectors", f"{where(path)} must import streamsvm.connectors"
            if where(path).startswith("connectors/") and room(item.module) == "connectors":
                assert item.relative, f"{where(path)} must import its siblings with a dot"


def folder(module):
    """The folder of connectors/ that one of our modules or names lies in, or None."""
    parts = module.split(".")
    return parts[2] if parts[:2] == ["streamsvm", "connectors"] and len(parts) > 2 else None


def test_no_folder_of_connectors_imports_from_a_higher_one():
    for path in sorted((ROOT / "connectors").rglob("*.py")):
        own = folder(module_name(path))
        below = {None} if own is None else {own}
        for rooms in CONNECTORS:
            if own in rooms:
                break
            below |= rooms
        used = {folder(item.module) for item in imports_of(path)} - {None}
        assert used <= below, f"{where(path)} is in {own!r}, which may import from {sorted(filter(None, below))}"


def test_only_the_settings_know_which_kind_of_log_there_is():
    """Everything else asks the `Backend`, so that a new kind of log is one folder and one entry."""
    for path in sorted((ROOT / "connectors").rglob("*.py")):
        if not where(path).startswith(("connectors/settings/", "connectors/logs/kafka/", "connectors/logs/rdkafka/")):
            assert not [item.module for item in imports_of(path) if "connectors.logs.kafka" in item.module], where(path)
            text = path.read_text(encoding="utf-8").replace("settings.kafka_section", "")
            assert "settings.kafka" not in text, where(path)


def test_headings_of_docstrings_have_lines_of_their_own():
    """A text that was wrapped anew would have swallowed them, and numpydoc would show it as one paragraph."""
    for path in PRODUCT:
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.Module):
                for line in (ast.get_docstring(node) or "").splitlines():
                    assert not re.search(r"\w+ -{4,}", line), f"{path}: {line}"


def test_texts_name_modules_of_today():
    """Such as `online.removal.forget`, or what is in it: who moves a file is told which texts name it."""
    modules = {module_name(path).removeprefix("streamsvm."): path for path in PRODUCT}
    dotted = re.compile(r"`(?:streamsvm\.)?((?:active|batch|core|estimators|online|validation)(?:\.\w+)+)`")
    stale = []
    for path in [*EVERYTHING, *(ROOT / "docs").glob("*.md"), ROOT / "CONTRIBUTING.md"]:
        for name in dotted.findall(path.read_text(encoding="utf-8")):
            module, _, inside = name.rpartition(".")
            if name not in modules and not (
                module in modules and re.search(rf"\b{inside}\b", modules[module].read_text("utf-8"))
            ):
                stale.append(f"{where(path)}: {name}")
    assert stale == []


def test_no_files_import_each_other():
    """Imports inside functions and under TYPE_CHECKING count as well: such a circle is two files that are one."""
    modules = {module_name(path): path for path in PRODUCT}
    graph = {}
    for name, path in modules.items():
        used = {item.module for item in imports_of(path)}
        targets = {module if module in modules else module.rpartition(".")[0] for module in used}
        # Python runs a package's __init__ before its modules, which imports nothing back: the map of a folder.
        graph[name] = {target for target in targets if target in modules and target != name}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail("an import circle: " + " <- ".join(error.args[1]))


def circles_of(graph):
    """The sets of nodes that reach each other, by brute force: there are few nodes."""
    reach = {node: set(targets) for node, targets in graph.items()}
    for middle in reach:
        for node in reach:
            if middle in reach[node]:
                reach[node] |= reach[middle]
    return {
        frozenset(other for other in reach if other in reach[node] and node in reach[other])
        for node in reach
        if node in reach[node]
    }


def circles_between_folders(files):
    """The circles of every level: of each package, among its files and the folders in it, by the package's name."""
    modules = {module_name(path): path for path in files}
    graphs = {name: {} for name, path in modules.items() if path.name == "__init__.py"}
    for name, path in modules.items():
        for item in imports_of(path):
            target = item.module if item.module in modules else item.module.rpartition(".")[0]
            ours, theirs = name.split("."), target.split(".")
            apart = next((i for i, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b), None)
            if target in modules and apart:
                graph = graphs[".".join(ours[:apart])]
                graph.setdefault(ours[apart], set()).add(theirs[apart])
                graph.setdefault(theirs[apart], set())
    return {(package, circle) for package, graph in graphs.items() for circle in circles_of(graph)}


def test_no_folders_import_each_other():
    """At every level: what two folders need from each other has a home of its own, below both."""
    assert circles_between_folders(PRODUCT) == set()


def test_a_circle_between_folders_is_seen(tmp_path, monkeypatch):
    """Two folders in a circle, though none of their files are: a.x -> b.x, b.y -> a.y."""
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    files = {"a/x": "from p.b.x import One", "a/y": "", "b/x": "", "b/y": "from ..a import y", "c/x": "import p.a.x"}
    for name, text in (files | dict.fromkeys(["__init__", "a/__init__", "b/__init__", "c/__init__"], "")).items():
        path = tmp_path / "p" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert circles_between_folders(sorted(tmp_path.rglob("*.py"))) == {("p", frozenset({"a", "b"}))}


def test_every_folder_is_a_package_that_is_shipped():
    """A folder that pyproject.toml does not name is missing from the wheel."""
    with open(ROOT / "pyproject.toml", "rb") as file:
        shipped = tomllib.load(file)["tool"]["setuptools"]["packages"]
    assert sorted(shipped) == sorted({module_name(path.with_name("__init__.py")) for path in PRODUCT})


@pytest.mark.long
def test_importing_the_engine_loads_no_optional_package():
    script = "import sys, streamsvm, streamsvm.validation; print(*sorted(sys.modules))"
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT.anchor)
    loaded = set(answer.stdout.split())
    assert {"streamsvm", "numpy"} <= loaded
    forbidden = {"kafka", "cupy", "joblib", "sklearn", "matplotlib", "pandas", "polars"}
    assert not loaded & {*forbidden, "connectors", "streamsvm.connectors"}


def test_only_the_rooms_in_the_cache_s_stamp_compile():
    """Compiled code of another room would be taken from the cache after an edit."""
    for path in PRODUCT:
        compiles = any(item.module.startswith("streamsvm.core.compiling._jit.compiled") for item in imports_of(path))
        assert not compiles or path.relative_to(ROOT).parts[1] in COMPILED_ROOMS, where(path)
