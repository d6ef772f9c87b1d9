"""The chart, rendered by Helm.  Without Helm, the tests that need it are skipped."""

import functools
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

CHART = Path(__file__).parents[2] / "deploy" / "helm" / "streamsvm"


def tool(name):
    """The path of a program, beside this Python or elsewhere; without it the test is skipped."""
    found = shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed; `make tools` builds it with Go")
    return found


def helm(command, values=None):
    """What a command of Helm answers for the chart with these values, instead of those of values.yaml."""
    words = {"lint": ["lint", "--strict"], "template": ["template", "fraud"]}[command]
    options = ["--values", "-"] if values else []
    line = [tool("helm"), *words, str(CHART), *options]
    return subprocess.run(line, input=json.dumps(values), capture_output=True, text=True)


@functools.cache
def _rendered(values):
    answer = helm("template", json.loads(values))
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


def objects(values):
    """The objects of Kubernetes that the chart makes, by kind and name."""
    made = [made for made in yaml.safe_load_all(_rendered(json.dumps(values))) if made]
    return {(each["kind"], each["metadata"]["name"]): each for each in made}


def pods(values):
    """The templates of pods among them, by component."""
    found = [made["spec"]["template"] for made in objects(values).values() if "template" in made.get("spec", ())]
    return {template["metadata"]["labels"]["app.kubernetes.io/component"]: template for template in found}
