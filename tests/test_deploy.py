"""What an operator installs: each file parses, and speaks only of commands, settings and metrics that exist."""

import configparser
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from helm import Chart

from streamsvm.connectors.commands.cli import make_parser
from streamsvm.connectors.runtime.metrics import METRICS
from streamsvm.connectors.settings.loading import load
from streamsvm.connectors.trainer.state.lesson import JoinCounters

DEPLOY = Path(__file__).parents[1] / "deploy"
CHART = DEPLOY / "helm" / "streamsvm"
SUFFIXES = {"histogram": ("_bucket", "_sum", "_count"), "counter": ("",), "gauge": ("",)}
KNOWN = {metric.name + suffix for metric in METRICS for suffix in SUFFIXES[metric.kind]}
LABELS = {"instance", "job", "role", "le", "outcome"} | {label for metric in METRICS for label in metric.labels}


def expressions():
    """Every expression of the dashboard and of the alerts, with its place."""
    for panel in json.loads((DEPLOY / "grafana" / "streamsvm.json").read_text())["panels"]:
        for target in panel.get("targets", ()):
            yield pytest.param(target["expr"], id=panel["title"])
    for group in yaml.safe_load((DEPLOY / "prometheus" / "alerts.yml").read_text())["groups"]:
        for rule in group["rules"]:
            yield pytest.param(rule["expr"], id=rule["alert"])


@pytest.mark.parametrize("expression", list(expressions()))
def test_an_expression_asks_for_metrics_that_exist(expression):
    names = set(re.findall(r"\bstreamsvm_\w+", expression))
    assert names <= KNOWN
    assert names or "process_resident_memory_bytes" in expression
    assert set(re.findall(r"(\w+)=~?\"", expression)) <= LABELS
    outcomes = {word for given in re.findall(r'outcome=~?"([^"]*)"', expression) for word in given.split("|")}
    assert outcomes <= set(JoinCounters.__dataclass_fields__)
    assert expression.count("(") == expression.count(")")


def test_an_alert_says_what_happened_and_what_to_do():
    (group,) = yaml.safe_load((DEPLOY / "prometheus" / "alerts.yml").read_text())["groups"]
    for rule in group["rules"]:
        assert set(rule["annotations"]) == {"summary", "action"}
        assert rule["labels"]["severity"] in ("warning", "critical")


def test_the_panels_do_not_overlap():
    panels = json.loads((DEPLOY / "grafana" / "streamsvm.json").read_text())["panels"]
    taken = [
        (x, y)
        for position in (panel["gridPos"] for panel in panels)
        for x in range(position["x"], position["x"] + position["w"])
        for y in range(position["y"], position["y"] + position["h"])
    ]
    assert len(set(taken)) == len(taken)
    assert len({panel["id"] for panel in panels}) == len(panels)


def test_the_composition_runs_commands_that_exist():
    composition = yaml.safe_load((DEPLOY / "docker-compose.yml").read_text())
    services = composition["services"]
    for name in ("topics", "trainer", "merger", "scorer"):
        make_parser().parse_args(services[name]["command"])
    mounted = {volume.split(":")[0] for service in services.values() for volume in service.get("volumes", ())}
    for source in mounted:
        assert source in composition["volumes"] or (DEPLOY / source).exists()
    assert all(port.startswith("127.0.0.1:") for service in services.values() for port in service.get("ports", ()))


def test_the_image_runs_a_command_that_exists():
    lines = (DEPLOY / "Dockerfile").read_text().splitlines()
    (command,) = (json.loads(line.removeprefix("CMD ")) for line in lines if line.startswith("CMD "))
    make_parser().parse_args(command)
    for line in lines:
        if line.startswith("COPY ") and "--from" not in line:
            assert all((DEPLOY.parent / source).exists() for source in line.split()[1:-1])


def test_the_configuration_loads(tmp_path):
    settings = load(DEPLOY / "app.toml", {"STREAMSVM_GROUP_INSTANCE": "trainer-0"})
    assert (settings.http.port, settings.group.instance) == (8080, "trainer-0")


def test_a_unit_has_sections_that_systemd_knows_and_a_template_of_the_command():
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str
    unit.read(DEPLOY / "systemd" / "streamsvm@.service")
    assert set(unit) - {"DEFAULT"} == {"Unit", "Service", "Install"}
    for command in ("run", "merger", "score"):
        make_parser().parse_args(unit["Service"]["ExecStart"].replace("%i", command).split()[1:])


# --- the chart; Helm itself is not needed -----------------------------------------------------------------------------


def test_the_chart_asks_for_values_that_it_has():
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    for path in CHART.glob("templates/*"):
        for name in re.findall(r"\.Values\.([\w.]+)", path.read_text()):
            value = values
            for key in name.split("."):
                value = value[key]


def test_the_chart_includes_templates_that_it_has():
    texts = [path.read_text() for path in CHART.glob("templates/*")]
    defined = {name for text in texts for name in re.findall(r'define "([^"]+)"', text)}
    included = {name for text in texts for name in re.findall(r'include "([^"]+)"', text)}
    assert included == defined


NAMES = ["config", "state", "trainer", "merger", "scorer", "service"]
CHOICES = [{}, {"state__shared": True, "state__storageClass": "fast", "secret": "passwords", "scrape": False}]


@pytest.mark.parametrize("values", CHOICES, ids=["defaults", "other values"])
@pytest.mark.parametrize("name", NAMES)
def test_a_template_makes_an_object_of_kubernetes(name, values):
    made = Chart(CHART, **values).render(name)
    if made is None:
        assert (name, values) == ("state", {})
        return
    assert {"apiVersion", "kind", "metadata"} <= set(made)
    if name in ("trainer", "merger", "scorer"):
        (container,) = made["spec"]["template"]["spec"]["containers"]
        make_parser().parse_args(container["args"])
        assert made["spec"]["selector"]["matchLabels"].items() <= made["spec"]["template"]["metadata"]["labels"].items()
        assert container["livenessProbe"]["httpGet"]["path"] == "/healthz"
        assert made["spec"]["template"]["spec"]["enableServiceLinks"] is False  # Their variables look like settings.
        assert ("envFrom" in container) == bool(values)


@pytest.mark.parametrize("values", CHOICES, ids=["defaults", "other values"])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the validator
def test_the_schema_of_kubernetes_accepts_a_template(name, values):
    kubernetes = pytest.importorskip("kubernetes_validate")
    made = Chart(CHART, **values).render(name)
    if made is not None:
        kubernetes.validate(made, kubernetes.latest_version(), strict=True)


def test_the_schema_of_compose_accepts_the_composition():
    pytest.importorskip("check_jsonschema")
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec"]
    answer = subprocess.run([*command, str(DEPLOY / "docker-compose.yml")], capture_output=True, text=True)
    assert answer.returncode == 0, answer.stdout


def test_the_values_hold_a_configuration():
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    assert tomllib.loads(values["config"])["log"]["topic"] == "events"


def test_the_settings_of_the_chart_exist(tmp_path):
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    (tmp_path / "app.toml").write_text(values["config"])
    helpers = (CHART / "templates" / "_helpers.tpl").read_text()
    given = dict(re.findall(r'- \{ name: (STREAMSVM_\w+), value: "?([^" }]+)"? \}', helpers))
    settings = load(tmp_path / "app.toml", given | {"STREAMSVM_GROUP_INSTANCE": "a-0"})
    assert (settings.http.port, settings.daemon.log_format) == (8080, "json")
