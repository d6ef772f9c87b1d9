"""The wheel: holds every file, and works in an environment that knows nothing of this checkout."""

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest
from packaging.version import Version

ROOT = Path(__file__).parents[1]
SMOKE = """
import json, sys
from pathlib import Path
import streamsvm, streamsvm.connectors
from streamsvm import LASVM
model = LASVM(C=10.0, gamma=0.5)
for i in range(60):
    model.learn_one({"a": i % 7, "b": i % 3}, i % 7 > 3)
again = LASVM.from_bytes(model.to_bytes())
right = sum(again.predict_one({"a": i % 7, "b": i % 3}) == (i % 7 > 3) for i in range(60))
places = [str(Path(module.__file__).parent) for module in (streamsvm, streamsvm.connectors)]
print(json.dumps({"right": right, "places": places, "version": streamsvm.__version__}))
"""


COMPILED_ALREADY = """
import sys
import numpy as np
from streamsvm import LASVM, LASVMNC, OneVsRest
from streamsvm.conformal import ConformalClassifier
from streamsvm.core.compiling.progress import on_compilation
from streamsvm.features import Records
from streamsvm.sklearn_api import LASVMClassifier
from streamsvm.validation import cross_validate
X = np.random.default_rng(0).normal(size=(300, 3))
y = X[:, 0] + X[:, 1] ** 2 > 0.5
with on_compilation(lambda: sys.exit("something is compiled")):
    for model in (LASVM(), LASVM(budget=50), LASVMNC()):
        model.learn_one({"a": 1.0, "b": 2.0}, True)
        model.predict_one({"a": 1.0})
        model.finish()
    model = LASVM(gamma=0.5)
    model.learn_many(X, y)
    model.forget([3])
    model.predict_proba_many(X)
    several = OneVsRest(LASVM())
    several.learn_many(X, np.where(y, "yes", np.where(X[:, 2] > 0, "no", "perhaps")))
    several.predict_one({0: 1.0, 1: 1.0, 2: 1.0})
    several.finish()
    OneVsRest(LASVM(window=50)).learn_many(X, y + 2 * (X[:, 2] > 0))
    ConformalClassifier(LASVM()).learn_one({"a": 1.0}, True)
    LASVMClassifier().fit(X, y).predict(X)
    LASVMClassifier(kernel="precomputed").fit(X @ X.T, y)
    (Records({"words": "text"}) | LASVM()).learn_one({"words": "some words", "n": 3.0}, True)
    cross_validate(LASVM(gamma=0.5), X, y, k=5)
print("done")
"""


def run(*command, cwd, **environment):
    """Run without anything from this environment that could lead Python back to the checkout."""
    variables = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")} | environment
    answer = subprocess.run(
        [str(c) for c in command], cwd=cwd, env=variables, capture_output=True, text=True, check=False
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
    return answer.stdout


def product_files():
    """What git tracks or would track of the two packages; everything on disk where there is no git checkout."""
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "streamsvm", "connectors"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listing.returncode == 0:
        return {name for name in listing.stdout.splitlines() if (ROOT / name).exists()}
    paths = [*(ROOT / "streamsvm").rglob("*"), *(ROOT / "connectors").rglob("*")]
    return {path.relative_to(ROOT).as_posix() for path in paths if path.suffix in {".html", ".npz", ".py", ".typed"}}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Built from a copy, so that left-overs of earlier builds in the checkout cannot get in."""
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("dist")
    for name in [*product_files(), "pyproject.toml", "README.md", "LICENSE"]:
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, source / name)
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", target, source, cwd=target)
    (built,) = target.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def compiled_wheel(tmp_path_factory):
    """With code for processors like this one, which is in the compile cache when the tests run."""
    target = tmp_path_factory.mktemp("compiled")
    said = run(sys.executable, ROOT / "deploy" / "wheel.py", "--levels", "native", "--out", target, cwd=target)
    # Each entry and signature costs about a second of whoever compiles, and the wheel 20 kB for each level.
    assert int(re.search(r"(\d+) entries", said)[1]) <= 122
    (built,) = target.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def environment(wheel, tmp_path_factory):
    return installed(wheel, tmp_path_factory.mktemp("environment"))


def installed(wheel, folder):
    """A new environment with the wheel; its dependencies, but no streamsvm, come from the one that runs the tests."""
    venv.create(folder, symlinks=True)
    run(sys.executable, "-m", "pip", "--python", folder / "bin" / "python", "install", "--no-deps", wheel, cwd=folder)
    (site,) = folder.glob("lib/python*/site-packages")
    # Python does not follow further .pth files from here, so an editable install of the checkout stays out of sight.
    (site / "borrowed.pth").write_text("\n".join(sysconfig.get_path(key) for key in ("purelib", "platlib")))
    return folder


def test_the_wheel_holds_exactly_the_tracked_files(wheel):
    shipped = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    tracked = {f"streamsvm/{name}" if name.startswith("connectors/") else name for name in product_files()}
    assert shipped == tracked
    assert "streamsvm/py.typed" in shipped


def test_a_wheel_with_code_is_for_one_python_and_one_platform(wheel, compiled_wheel):
    assert wheel.name.endswith("-py3-none-any.whl")
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    assert compiled_wheel.name.endswith(f"-{python}-none-{platform}.whl")
    files, pure = (set(zipfile.ZipFile(each).namelist()) for each in (compiled_wheel, wheel))
    (archive,) = files - pure
    assert re.fullmatch(r"streamsvm/core/compiling/code-[0-9a-f]{16}\.zip", archive)
    assert pure < files
    assert compiled_wheel.stat().st_size < 5e6  # three levels must stay below 15 MB


def test_a_wheel_with_code_compiles_nothing(compiled_wheel, tmp_path):
    """Its user has no folder to keep code in."""
    python = installed(compiled_wheel, tmp_path / "environment") / "bin" / "python"
    (tmp_path / "blocked").touch()
    answer = run(python, "-c", COMPILED_ALREADY, cwd=tmp_path, NUMBA_CACHE_DIR=str(tmp_path / "blocked"))
    assert answer == "done\n"


def test_the_installed_wheel_learns(environment):
    answer = json.loads(run(environment / "bin" / "python", "-c", SMOKE, cwd=environment))
    assert answer["right"] == 60
    assert all(Path(place).is_relative_to(environment) for place in answer["places"])
    assert answer["version"] == (ROOT / "streamsvm" / "_version.py").read_text().split('"')[-2]


def test_the_installed_command_explains_itself(environment):
    assert "demo" in run(environment / "bin" / "streamsvm", "--help", cwd=environment)


def test_ci_tries_the_oldest_libraries_that_are_allowed():
    with open(ROOT / "pyproject.toml", "rb") as file:
        project = tomllib.load(file)["project"]
    allowed = project["dependencies"] + project["optional-dependencies"]["sklearn"]
    oldest = {re.split("[>,<]", text)[0]: re.search(r">=([\d.]+)", text)[1] for text in allowed}
    lines = (ROOT / "constraints" / "lowest.txt").read_text().splitlines()
    pinned = dict(line.split("==") for line in lines if not line.startswith("#"))
    assert {name: Version(text) for name, text in pinned.items()} == {
        name: Version(text) for name, text in oldest.items()
    }
