"""What an operator installs: each file parses, and speaks only of commands, settings and metrics that exist."""

import configparser
import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from helm import CHART, helm, objects, pods, tool

from streamsvm import __version__
from streamsvm.connectors.commands.cli import make_parser
from streamsvm.connectors.runtime.metrics import METRICS
from streamsvm.connectors.settings.loading import load
from streamsvm.connectors.trainer.state.lesson import JoinCounters

DEPLOY = Path(__file__).parents[1] / "deploy"
DASHBOARD = json.loads((DEPLOY / "grafana" / "streamsvm.json").read_text())
ALERTS = DEPLOY / "prometheus" / "alerts.yml"
UNITS = DEPLOY / "systemd"
COMMANDS = ("run", "merger", "score")  # that a host runs as units
SUFFIXES = {"histogram": ("_bucket", "_sum", "_count"), "counter": ("",), "gauge": ("",)}
KNOWN = {metric.name + suffix for metric in METRICS for suffix in SUFFIXES[metric.kind]}
LABELS = {"instance", "job", "role", "le", "outcome"} | {label for metric in METRICS for label in metric.labels}


def panels():
    """Every expression of the dashboard, with its panel."""
    for panel in DASHBOARD["panels"]:
        for target in panel.get("targets", ()):
            yield pytest.param(target["expr"], id=panel["title"])


def rules():
    """Every expression of the alert rules, with its alert."""
    for group in yaml.safe_load(ALERTS.read_text())["groups"]:
        for rule in group["rules"]:
            yield pytest.param(rule["expr"], id=rule["alert"])


@pytest.mark.parametrize("expression", [*panels(), *rules()])
def test_an_expression_asks_for_metrics_that_exist(expression):
    names = set(re.findall(r"\bstreamsvm_\w+", expression))
    assert names
    assert names <= KNOWN
    assert set(re.findall(r"(\w+)=~?\"", expression)) <= LABELS
    outcomes = {word for given in re.findall(r'outcome=~?"([^"]*)"', expression) for word in given.split("|")}
    assert outcomes <= set(JoinCounters.__dataclass_fields__)
    assert expression.count("(") == expression.count(")")


@pytest.mark.parametrize("expression", list(panels()))
def test_a_panel_shows_the_chosen_deployment_only(expression):
    selectors = re.findall(r"\b(?:streamsvm|process)_\w+(?:\{(.*?)\})?", expression.partition(" and on ")[0])
    assert all(selector.startswith('job="$job",instance=~"$instance"') for selector in selectors)


def test_the_dashboard_asks_which_data_source_and_which_deployment():
    variables = {each["name"]: each for each in DASHBOARD["templating"]["list"]}
    assert [each["type"] for each in variables.values()] == ["datasource", "query", "query"]
    assert not variables["job"]["multi"]  # One deployment at a time.
    assert variables["instance"]["includeAll"]
    sources = [panel["datasource"] for panel in DASHBOARD["panels"] if panel["type"] != "row"]
    sources += [variables[name]["datasource"] for name in ("job", "instance")]
    assert all(source == {"type": "prometheus", "uid": "${datasource}"} for source in sources)


def test_every_metric_of_classes_and_merges_has_a_panel():
    shown = " ".join(panel.values[0] for panel in panels())
    names = {name for name in KNOWN if re.match(r"streamsvm_(class_|merge|failed_merges)", name)}
    assert {name for name in names if name not in shown} == {"streamsvm_merge_seconds_bucket"}


def test_an_alert_says_what_happened_and_what_to_do():
    (group,) = yaml.safe_load(ALERTS.read_text())["groups"]
    for rule in group["rules"]:
        assert set(rule["annotations"]) == {"summary", "action"}
        assert rule["labels"]["severity"] in ("warning", "critical")


def test_prometheus_accepts_the_files_and_the_alerts_do_what_they_say(tmp_path):
    chosen = {"$job": "fraud", "$instance": ".*"}
    recorded = [
        panel.values[0].replace("$job", chosen["$job"]).replace("$instance", chosen["$instance"]) for panel in panels()
    ]
    dashboard = [{"record": f"panel:{i}", "expr": expression} for i, expression in enumerate(recorded)]
    (tmp_path / "dashboard.yml").write_text(json.dumps({"groups": [{"name": "dashboard", "rules": dashboard}]}))
    promtool, folder = tool("promtool"), DEPLOY / "prometheus"
    for words in (
        ["check", "config", folder / "prometheus.yml"],
        ["check", "rules", ALERTS, tmp_path / "dashboard.yml"],
        ["test", "rules", folder / "alerts.test.yml"],
    ):
        answer = subprocess.run([promtool, *map(str, words)], capture_output=True, text=True)
        assert answer.returncode == 0, answer.stdout + answer.stderr


def test_the_panels_do_not_overlap():
    taken = [
        (x, y)
        for position in (panel["gridPos"] for panel in DASHBOARD["panels"])
        for x in range(position["x"], position["x"] + position["w"])
        for y in range(position["y"], position["y"] + position["h"])
    ]
    assert len(set(taken)) == len(taken)
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])


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


def test_the_configuration_leaves_the_address_to_each_process():
    """The units of a host share its address, and only a container may listen on all of its own."""
    assert "http" not in tomllib.loads((DEPLOY / "app.toml").read_text())
    composition = yaml.safe_load((DEPLOY / "docker-compose.yml").read_text())["services"]
    for name in ("trainer", "merger", "scorer"):
        settings = load(DEPLOY / "app.toml", composition[name]["environment"])
        assert (settings.http.host, settings.http.port) == ("0.0.0.0", 8080)  # noqa: S104
    assert load(DEPLOY / "app.toml", composition["trainer"]["environment"]).group.instance == "trainer-0"


def unit(path):
    """A file of systemd."""
    parsed = configparser.ConfigParser(strict=False, interpolation=None)
    parsed.optionxform = str
    parsed.read(path)
    return parsed


def test_a_unit_has_sections_that_systemd_knows_and_a_template_of_the_command():
    template = unit(UNITS / "streamsvm@.service")
    assert set(template) - {"DEFAULT"} == {"Unit", "Service", "Install"}
    for command in COMMANDS:
        make_parser().parse_args(template["Service"]["ExecStart"].replace("%i", command).split()[1:])


def test_the_units_of_a_host_have_ports_of_their_own():
    served = []
    for command in COMMANDS:
        (path,) = (UNITS / f"streamsvm@{command}.service.d").iterdir()
        variables = dict(each.split("=") for each in unit(path)["Service"]["Environment"].split())
        settings = load(DEPLOY / "app.toml", variables)
        assert settings.http.host == "127.0.0.1"
        served.append(settings.http.port)
    assert len({0, *served}) == len(COMMANDS) + 1


def test_systemd_has_no_complaint(tmp_path):
    verify = shutil.which("systemd-analyze")
    if verify is None:
        pytest.skip("systemd-analyze is not installed")
    shutil.copytree(UNITS, tmp_path, dirs_exist_ok=True)
    template = tmp_path / "streamsvm@.service"
    template.write_text(template.read_text().replace("/opt/streamsvm/bin/streamsvm", shutil.which("true")))
    units = [f"streamsvm@{command}.service" for command in COMMANDS]
    answer = subprocess.run(
        [verify, "verify", "--man=no", *units],
        env={"SYSTEMD_UNIT_PATH": f"{tmp_path}:"},
        capture_output=True,
        text=True,
    )
    assert (answer.returncode, answer.stderr) == (0, "")


def test_the_schema_of_compose_accepts_the_composition():
    pytest.importorskip("check_jsonschema")
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec"]
    answer = subprocess.run([*command, str(DEPLOY / "docker-compose.yml")], capture_output=True, text=True)
    assert answer.returncode == 0, answer.stdout


# --- the chart --------------------------------------------------------------------------------------------------------

VALUES = yaml.safe_load((CHART / "values.yaml").read_text())
SCHEMA = json.loads((CHART / "values.schema.json").read_text())
PLACE = {"nodeSelector": {"disk": "fast"}, "tolerations": [{"key": "gpu", "operator": "Exists"}], "affinity": {}}
EVERYTHING = {
    "image": {"repository": "registry.example.org/streamsvm", "tag": "7"},
    "imagePullSecrets": [{"name": "registry"}],
    "secret": "passwords",
    "env": [{"name": "AWS_REGION", "value": "eu-west-1"}],
    "volumes": [{"name": "kafka-tls", "secret": {"secretName": "kafka-tls"}}],
    "volumeMounts": [{"name": "kafka-tls", "mountPath": "/etc/kafka-tls", "readOnly": True}],
    "topics": {"create": True, "partitions": 6, "replication": 3},
    "trainer": {"replicas": 2, "nodeSelector": {"gpu": "yes"}},
    "labelling": {"enabled": True},
    "state": {"shared": True, "storageClass": "fast"},
    "serviceAccount": {"create": True, "annotations": {"eks.amazonaws.com/role-arn": "arn:aws:iam::1:role/a"}},
    "podAnnotations": {"a": "b"},
    "podLabels": {"c": "d"},
    **PLACE,
    "podDisruptionBudget": {"enabled": True},
    "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
}
CHOICES = [
    pytest.param({}, id="defaults"),
    pytest.param(EVERYTHING, id="everything"),
    pytest.param({"scrape": False, "merger": {"replicas": 0}, "fullnameOverride": "other"}, id="little"),
]
MISTAKES = [
    ({"trainr": {"replicas": 2}}, "trainr"),
    ({"trainer": {"replica": 2}}, "replica"),
    ({"trainer": {"replicas": "2"}}, "replicas"),
    ({"trainer": {"replicas": -1}}, "replicas"),
    ({"scorer": {"resources": {"limit": {"memory": "1Gi"}}}}, "limit"),
    ({"scorer": {"resources": {"limits": {"memory": "1 Gi"}}}}, "memory"),
    ({"merger": None, "labelling": {"enable": True}}, "enable"),
    ({"image": {"pullPolicy": "always"}}, "pullPolicy"),
    ({"state": {"accessMode": "ReadWriteAll"}}, "accessMode"),
    ({"secrets": "passwords"}, "secrets"),
    ({"env": {"A": "b"}}, "env"),
    ({"env": [{"name": "A", "valu": "b"}]}, "valu"),
    ({"volumeMounts": [{"name": "a"}]}, "mountPath"),
    ({"tolerations": [{"keys": "gpu"}]}, "keys"),
    ({"nodeSelector": {"gpu": True}}, "gpu"),
    ({"imagePullSecrets": ["registry"]}, "imagePullSecrets"),
    ({"serviceMonitor": {"interval": "soon"}}, "interval"),
    ({"podDisruptionBudget": {"maxUnavailable": 0}}, "maxUnavailable"),
    ({"topics": {"partitions": 0}}, "partitions"),
]


def merged(values, changed):
    """Values with some changed, as Helm merges them."""
    out = dict(values)
    for name, value in changed.items():
        is_deep = isinstance(value, dict) and isinstance(values.get(name), dict)
        out[name] = merged(values[name], value) if is_deep else value
    return out


def validator():
    return pytest.importorskip("jsonschema").Draft7Validator(SCHEMA)


@pytest.mark.parametrize("values", CHOICES)
def test_the_schema_of_the_values_accepts_what_is_right(values):
    assert list(validator().iter_errors(merged(VALUES, values))) == []


@pytest.mark.parametrize(("values", "name"), MISTAKES)
def test_the_schema_of_the_values_refuses_a_mistake(values, name):
    errors = list(validator().iter_errors(merged(VALUES, values)))
    assert any(name in f"{error.json_path} {error.message}" for error in errors)


def test_the_schema_knows_exactly_the_values_that_there_are():
    resolved = {
        name: SCHEMA["definitions"].get(part.get("$ref", "").rpartition("/")[2], part)
        for name, part in SCHEMA["properties"].items()
    }
    assert resolved.keys() == {"global", *VALUES}
    place = {"nodeSelector", "tolerations", "affinity"}  # each component may have its own
    for name, part in resolved.items():
        if part.get("additionalProperties") is False and name != "affinity":
            assert part["properties"].keys() - place == VALUES[name].keys()


def test_the_values_hold_a_configuration_and_the_chart_the_version():
    assert tomllib.loads(VALUES["config"])["log"]["topic"] == "events"
    assert yaml.safe_load((CHART / "Chart.yaml").read_text())["appVersion"] == __version__


@pytest.mark.parametrize("values", CHOICES)
def test_helm_has_no_complaint(values):
    answer = helm("lint", values)
    assert answer.returncode == 0, answer.stdout + answer.stderr


def test_helm_refuses_a_misspelt_value():
    answer = helm("template", {"trainer": {"replica": 2}})
    assert answer.returncode != 0
    assert "replica" in answer.stderr


@pytest.mark.parametrize("values", CHOICES)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the validator
def test_the_schema_of_kubernetes_accepts_the_objects(values):
    kubernetes = pytest.importorskip("kubernetes_validate")
    for made in objects(values).values():
        if made["kind"] != "ServiceMonitor":  # the Prometheus Operator's
            kubernetes.validate(made, kubernetes.latest_version(), strict=True)


@pytest.mark.parametrize("values", CHOICES)
def test_the_objects_find_each_other(values):
    made, templates = objects(values), pods(values)
    labels = [template["metadata"]["labels"] for template in templates.values()]
    for (kind, _), each in made.items():
        selector = each.get("spec", {}).get("selector", {})
        wanted = (selector.get("matchLabels", selector)).items()
        if kind == "ServiceMonitor":
            assert any(
                wanted <= other["metadata"]["labels"].items() for other in made.values() if other["kind"] == "Service"
            )
        elif wanted:
            assert any(wanted <= of_pod.items() for of_pod in labels)
        if kind == "StatefulSet":
            assert ("Service", each["spec"]["serviceName"]) in made
    for template in templates.values():
        for volume in template["spec"]["volumes"]:
            assert "configMap" not in volume or ("ConfigMap", volume["configMap"]["name"]) in made
            claim = volume.get("persistentVolumeClaim")
            assert not claim or ("PersistentVolumeClaim", claim["claimName"]) in made


@pytest.mark.parametrize("values", CHOICES)
def test_a_pod_runs_a_command_with_settings_that_exist_and_no_rights(values, tmp_path):
    (tmp_path / "app.toml").write_text(VALUES["config"])
    for component, template in pods(values).items():
        spec = template["spec"]
        (container,) = spec["containers"]
        make_parser().parse_args(container["args"])
        given = {each["name"]: each.get("value", "trainer-0") for each in container["env"]}
        settings = load(tmp_path / "app.toml", given)
        assert settings.daemon.log_format == "json"
        assert settings.group.instance == ("trainer-0" if component == "trainer" else None)
        ports = {each["name"]: each["containerPort"] for each in container.get("ports", ())}
        served = {"http": settings.http.port, "page": settings.labelling.port}
        assert ports == (
            {"page": 8765} if component == "labelling" else {"http": 8080} if component != "topics" else {}
        )
        assert ports.items() <= served.items()
        assert container["securityContext"]["readOnlyRootFilesystem"]
        assert {"name": "tmp", "mountPath": "/tmp"} in container["volumeMounts"]  # noqa: S108
        assert spec["enableServiceLinks"] is False  # Their variables look like settings.
        assert spec["automountServiceAccountToken"] is False


def test_every_pod_has_what_the_values_give():
    templates = pods(EVERYTHING)
    assert set(templates) == {"topics", "trainer", "merger", "scorer", "labelling"}
    for component, template in templates.items():
        spec = template["spec"]
        (container,) = spec["containers"]
        assert container["image"] == "registry.example.org/streamsvm:7"
        assert container["envFrom"] == [{"secretRef": {"name": "passwords"}}]
        assert EVERYTHING["env"][0] in container["env"]
        assert EVERYTHING["volumeMounts"][0] in container["volumeMounts"]
        assert EVERYTHING["volumes"][0] in spec["volumes"]
        assert spec["imagePullSecrets"] == EVERYTHING["imagePullSecrets"]
        assert spec["serviceAccountName"] == "fraud"
        assert spec["tolerations"] == PLACE["tolerations"]
        assert spec["nodeSelector"] == ({"gpu": "yes"} if component == "trainer" else PLACE["nodeSelector"])
        assert template["metadata"]["labels"]["c"] == "d"
        assert template["metadata"]["annotations"].keys() == {"a", "checksum/config"}  # found by the ServiceMonitor
    assert templates["topics"]["spec"]["containers"][0]["args"][3:] == ["--partitions", "6", "--replication", "3"]


def test_the_defaults_keep_the_names_and_make_nothing_that_was_not_asked_for():
    assert set(objects({})) == {
        ("ConfigMap", "fraud-config"),
        ("StatefulSet", "fraud-trainer"),
        ("Service", "fraud-trainer"),
        ("Deployment", "fraud-merger"),
        ("Deployment", "fraud-scorer"),
    }
    (image,) = {template["spec"]["containers"][0]["image"] for template in pods({}).values()}
    assert image == f"streamsvm:{__version__}"
    assert all(template["metadata"]["annotations"]["prometheus.io/port"] == "8080" for template in pods({}).values())
