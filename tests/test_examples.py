"""The examples run as they stand, from any folder, without a warning."""

import subprocess
import sys
from pathlib import Path

import pytest

ELSEWHERE = {"kafka_round.py"}  # needs a broker: tests/kafka/test_commands.py
FOLDER = Path(__file__).parents[1] / "examples"
EXAMPLES = sorted(path for path in FOLDER.glob("*.py") if path.name not in ELSEWHERE)
NEEDS = {"bytewax_flow.py": "bytewax", "dask_grid.py": "distributed", "ray_grid.py": "ray"}  # what is no dependency


@pytest.mark.long
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_example_runs(path, tmp_path):
    if path.name in NEEDS:
        pytest.importorskip(NEEDS[path.name])
    script = [sys.executable, "-W", "error", str(path)]
    answer = subprocess.run(script, capture_output=True, text=True, cwd=tmp_path, timeout=300)
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout
