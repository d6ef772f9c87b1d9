"""Which room may open which door: read from the import statements of every file."""

import ast
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
PRODUCT = sorted(path for folder in ("streamsvm", "connectors") for path in (ROOT / folder).rglob("*.py"))
EVERYTHING = PRODUCT + sorted(
    path for folder in ("tests", "examples", "benchmarks") for path in (ROOT / folder).rglob("*.py")
)

# From the bottom up; a room imports from its own level and below. Modules that begin with an underscore are the bottom.
LEVELS = [
    {"snapshot", "arguments"},
    {"kernels"},
    {"blocks", "expansion", "storage", "integrity", "device"},
    {"batch"},
    {"online"},
    {"metrics"},
    {"validation", "active"},
    {"classifier", "features", "preprocessing", "estimators", "multiclass", "sklearn_api"},
    {"streamsvm"},  # the package itself, which names what is public
    {"connectors"},
]

# Third-party packages that only these rooms may import.
RESERVED = {
    "numba": {"_jit", "_simd"},
    "llvmlite": {"_simd"},
    "cupy": {"blocks"},
    "river": {"active", "validation", "classifier", "features", "multiclass", "preprocessing", "metrics", "connectors"},
    "sklearn": {"sklearn_api"},
    "kafka": {"connectors/kafka_log", "connectors/kafka_options"},
    "matplotlib": {"connectors/report"},
    "joblib": {"validation/crossval"},
}
LAZY = {"cupy", "joblib", "matplotlib"}


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


def imports_of(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    inside = {id(node) for f in ast.walk(tree) if isinstance(f, ast.FunctionDef) for node in ast.walk(f)}
    package = module_name(path).split(".")
    if path.name != "__init__.py":
        package.pop()
    for node in ast.walk(tree):
        at_once = id(node) not in inside
        if isinstance(node, ast.Import):
            yield from (Import(alias.name, at_once, False) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) + 1 - node.level] if node.level else []
            start = ".".join(base + ([node.module] if node.module else []))
            yield from (Import(f"{start}.{alias.name}", at_once, node.level > 0) for alias in node.names)


def room(module):
    """The room of one of our own modules or names, or None: streamsvm.online.lasvm.PROCESS is in 'online'."""
    parts = module.split(".")
    if parts[0] != "streamsvm":
        return None
    known = set().union(*LEVELS)
    if len(parts) > 1 and (parts[1] in known or parts[1].startswith("_")):
        return parts[1]
    return "streamsvm"


def level(name):
    return 0 if name.startswith("_") else next(i for i, rooms in enumerate(LEVELS) if name in rooms)


def where(path):
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("path", PRODUCT, ids=where)
def test_no_room_imports_from_a_higher_one(path):
    own = room(module_name(path))
    used = {item.module: room(item.module) for item in imports_of(path)}
    too_high = {module for module, other in used.items() if other and level(other) > level(own)}
    assert not too_high, f"{where(path)} is in {own!r}, below what it imports"


@pytest.mark.parametrize("path", PRODUCT, ids=where)
def test_every_file_belongs_to_a_room(path):
    """A new room has to be put into LEVELS, or it would pass for the package itself."""
    assert room(module_name(path)) != "streamsvm" or path == ROOT / "streamsvm" / "__init__.py"


@pytest.mark.parametrize("path", PRODUCT, ids=where)
def test_outside_packages_stay_in_their_rooms(path):
    own = room(module_name(path))
    inside_connectors = f"{own}/{path.stem}"
    for item in imports_of(path):
        package = item.module.split(".")[0]
        if package in RESERVED:
            assert RESERVED[package] & {own, inside_connectors}, f"{where(path)} must not import {package}"
            assert not (package in LAZY and item.at_once), f"{where(path)} must import {package} where it is used"


@pytest.mark.parametrize("path", EVERYTHING, ids=where)
def test_connectors_go_by_their_installed_name(path):
    """From the root, `import connectors` works by accident and makes a second copy of every class."""
    for item in imports_of(path):
        assert item.module.split(".")[0] != "connectors", f"{where(path)} must import streamsvm.connectors"
        if where(path).startswith("connectors/") and room(item.module) == "connectors":
            assert item.relative, f"{where(path)} must import its siblings with a dot"


def test_connectors_are_flat():
    """A sub-folder would be missing from the wheel, since pyproject.toml names each package."""
    assert not [where(path) for path in (ROOT / "connectors").glob("*/**/*.py")]


def test_importing_the_engine_loads_no_optional_package():
    script = "import sys, streamsvm, streamsvm.validation; print(*sorted(sys.modules))"
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT.anchor)
    loaded = set(answer.stdout.split())
    assert {"streamsvm", "numpy"} <= loaded
    forbidden = {"kafka", "cupy", "joblib", "sklearn", "matplotlib", "pandas", "polars"}
    assert not loaded & {*forbidden, "connectors", "streamsvm.connectors"}
