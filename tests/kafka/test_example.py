"""The example that needs a broker runs as it stands."""

import os
import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "examples" / "kafka_round.py"


def test_the_round_ends_with_a_prediction(broker, tmp_path):
    environment = {**os.environ, "STREAMSVM_KAFKA_BOOTSTRAP_SERVERS": broker.bootstrap}
    script = [sys.executable, str(EXAMPLE)]
    answer = subprocess.run(script, capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=300)
    assert answer.returncode == 0, answer.stderr
    assert "predicted 1000 events" in answer.stdout
    assert '"label"' in answer.stdout.splitlines()[-1]
