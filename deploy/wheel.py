"""Build a wheel that brings its compiled code: a process that uses it compiles nothing.

    python deploy/wheel.py                              # for all levels that this processor has, into dist/
    python deploy/wheel.py --levels native              # for processors like this one only
    python deploy/wheel.py --levels x86-64-v3 --out DIR

It needs what streamsvm needs, and the packages build, setuptools and scikit-learn.  Code is compiled for the versions
of Python and numba that it finds; with others, the wheel compiles like one without code.  Code that an earlier call has
left in the compile cache is not compiled again.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
PARTS = ("streamsvm", "connectors", "pyproject.toml", "README.md", "LICENSE")
COMPILE = """
import sys
from pathlib import Path
import streamsvm
from streamsvm.core.compiling import _jit
seconds = streamsvm.warmup()
processor, n_entries = _jit.pack(Path(_jit.__file__).parent)
print(f"{processor}: {n_entries} entries, {seconds:.0f} s")
"""
TAGS = """
[bdist_wheel]
python_tag = cp{0.major}{0.minor}
plat_name = {1}
"""


def main() -> None:
    """Compile, and build."""
    sys.path.insert(0, str(ROOT))
    from streamsvm.core.compiling._target import levels

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--levels", nargs="+", default=[level.processor for level in levels()] or ["native"], help="default: all"
    )
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="folder for the wheel (default: dist)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder)
        copy(source)
        for level in arguments.levels:
            print(f"{level} ...", flush=True)
            print(run("-c", COMPILE, PYTHONPATH=folder, STREAMSVM_CPU=level), end="", flush=True)
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        (source / "setup.cfg").write_text(TAGS.format(sys.version_info, platform))
        built = run("-m", "build", "--wheel", "--no-isolation", "--outdir", str(arguments.out.absolute()), folder)
    name = re.findall(r"streamsvm-\S+\.whl", built)[-1]
    print(f"{arguments.out / name}: {(arguments.out / name).stat().st_size / 1e6:.1f} MB")


def copy(target: Path) -> None:
    """Copy what a wheel is built from."""
    for name in PARTS:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, target / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, target / name)


def run(*arguments: str, **environment: str) -> str:
    """Run Python in a folder that has no package; return what it printed."""
    with tempfile.TemporaryDirectory() as folder:
        command, variables = [sys.executable, *arguments], {**os.environ, **environment}
        answer = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True)  # noqa: S603
    if answer.returncode:
        sys.exit(answer.stdout + answer.stderr)
    return answer.stdout


if __name__ == "__main__":
    main()
