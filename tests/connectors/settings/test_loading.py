"""The configuration: three layers, and every problem at once."""

import inspect
import re
import sys
import tomllib
from dataclasses import fields
from datetime import timedelta
from pathlib import Path

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer

from streamsvm.connectors.logs.kafka.options import OPTIONS
from streamsvm.connectors.logs.transport import Record
from streamsvm.connectors.settings import contradictions
from streamsvm.connectors.settings.checks import parse_partitions
from streamsvm.connectors.settings.loading import load
from streamsvm.connectors.settings.sections import SECTIONS, ConfigError, Settings
from streamsvm.estimators.learners import LEARNERS

GAP_FAMILY = ("clean_every", "max_non_sv", "steps", "ramp_s", "ramp_warmup")  # settings that lasvm has not


def write(tmp_path, text):
    path = tmp_path / "app.toml"
    path.write_text(text)
    return path


def problems(path, environment=None, overrides=(), **options):
    with pytest.raises(ConfigError) as caught:
        load(path, environment or {}, overrides, **options)
    assert str(caught.value) == "\n".join(caught.value.problems)
    return list(caught.value.problems)


def test_an_empty_file_gives_the_defaults(tmp_path):
    settings = load(write(tmp_path, ""), {})
    assert (settings.model.C, settings.model.kernel, settings.daemon.batch) == (10.0, "rbf", 64)
    assert settings.log.dir == tmp_path / "log"
    assert settings.daemon.state_dir == tmp_path / "state"


def test_the_example_shows_every_setting_with_its_default(tmp_path):
    text = (Path(__file__).parents[3] / "examples" / "app.toml").read_text()
    assert load(write(tmp_path, text), {}) == load(write(tmp_path, ""), {})
    shown = re.sub(r"^# (?=\w+ = |\[)", "", text, flags=re.MULTILINE)
    keys = tomllib.loads(shown)
    assert keys.keys() - {"kafka"} == SECTIONS.keys()
    for name, section in SECTIONS.items():
        assert set(keys[name]) == {item.name for item in fields(section)}, f"the section [{name}] of examples/app.toml"
    assert keys["kafka"].keys() >= {"bootstrap_servers", "security_protocol", "sasl_plain_password_file"}


def test_a_table_in_the_place_of_a_configuration_is_told_what_makes_one(tmp_path):
    (tmp_path / "app.csv").write_text("id,body\n1,hello\n")
    with pytest.raises(ConfigError, match=r"a configuration is a TOML file, such as `streamsvm init` makes"):
        load(tmp_path / "app.csv", {})


def test_file_then_environment_then_flags(tmp_path):
    path = write(tmp_path, "[model]\nC = 1\ngamma = 1\ntol = 0.1\n[daemon]\nbatch = 8\n")
    environment = {"STREAMSVM_MODEL_GAMMA": "2", "STREAMSVM_MODEL_TOL": "0.2", "STREAMSVM_DAEMON_MAX_BAD": "0.5"}
    settings = load(path, environment, ["model.tol=0.3", "daemon.max_bad = 1"])
    assert (settings.model.C, settings.model.gamma, settings.model.tol) == (1.0, 2.0, 0.3)
    assert (settings.daemon.batch, settings.daemon.max_bad) == (8, 1.0)


def test_text_becomes_the_type_of_the_key(tmp_path):
    overrides = [
        "model.C=10",
        "model.reprocess=3",
        "model.delta_max=1e-2",
        "features.names=['a', 'b']",
        "label.positive=1",
        "label.negative=2",
        "daemon.follow=false",
        "daemon.state_dir=other",
    ]
    settings = load(write(tmp_path, ""), {}, overrides)
    assert settings.model.C == 10.0
    assert (settings.model.reprocess, settings.model.delta_max) == (3, 0.01)
    assert settings.features.names == ("a", "b")
    assert (settings.label.positive, settings.label.negative) == ("1", "2")
    assert settings.daemon.follow is False
    assert settings.daemon.state_dir == tmp_path / "other"


@pytest.mark.parametrize(
    ("text", "environment", "flags", "origin"),
    [
        ("[model]\ntau = 0.1\n", {}, [], "app.toml"),
        ("", {"STREAMSVM_MODEL_TAU": "0.1"}, [], "STREAMSVM_MODEL_TAU"),
        ("", {}, ["model.tau=0.1"], "--set"),
    ],
)
def test_a_key_of_an_earlier_version_is_refused_with_its_new_name(tmp_path, text, environment, flags, origin):
    (problem,) = problems(write(tmp_path, text), environment, flags)
    assert problem.endswith(f"{origin}: model.tau is unknown: it is now called 'tol'")


@pytest.mark.parametrize(
    ("flag", "end"),
    [
        ("C=1", "--set C=...: expected section.key=value; did you mean model.C?"),
        ("model", "--set model: expected section.key=value"),
        ("modle.C=1", "--set modle.C=...: expected section.key=value; did you mean 'model'?"),
    ],
)
def test_a_flag_without_its_section_is_told_which_one(tmp_path, flag, end):
    (problem,) = problems(write(tmp_path, ""), {}, [flag])
    assert problem == end


def test_other_variables_are_left_alone(tmp_path):
    others = {"STREAMSVM_CACHE": "0", "STREAMSVM_NUM_THREADS": "2", "STREAMSVM_TEST_BOOTSTRAP": "x", "HOME": "/"}
    others |= {"STREAMSVM_KAFKA_CACHE": "/tests", "STREAMSVM_MODL": "x", "STREAMSVM_IMAGE_TAG": "1"}
    assert load(write(tmp_path, ""), others).kafka == {}, "no variable of another program turns Kafka on"


@pytest.mark.parametrize(
    ("variable", "meant"),
    [("STREAMSVM_MODL_C", "model"), ("STREAMSVM_LABELING_ASK", "labelling"), ("STREAMSVM_KAFAK_CLIENT", "kafka")],
)
def test_a_variable_of_a_misspelt_section_is_refused(tmp_path, variable, meant):
    (problem,) = problems(write(tmp_path, ""), {variable: "secret"})
    section = variable.split("_")[1].lower()
    assert problem == f"{variable}: unknown section {section!r}; did you mean {meant!r}?"


@pytest.mark.parametrize(
    "name", ["STREAMSVM", "STREAMSVM_LABEL", "STREAMSVM_HTTP", "STREAMSVM_MODL", "STREAMSVM_LOG_DIR"]
)
def test_the_variables_of_a_kubernetes_service_are_no_settings(tmp_path, name):
    service = {
        f"{name}_SERVICE_HOST": "10.0.0.11",
        f"{name}_SERVICE_PORT": "8080",
        f"{name}_SERVICE_PORT_WEB_UI": "8080",
        f"{name}_PORT": "tcp://10.0.0.11:8080",
        f"{name}_PORT_8080_TCP": "tcp://10.0.0.11:8080",
        f"{name}_PORT_8080_TCP_PROTO": "tcp",
        f"{name}_PORT_8080_TCP_PORT": "8080",
        f"{name}_PORT_8080_TCP_ADDR": "10.0.0.11",
    }
    path = write(tmp_path, "")
    assert load(path, service) == load(path, {})


def test_settings_beside_a_kubernetes_service_count(tmp_path):
    service = {"STREAMSVM_HTTP_SERVICE_HOST": "10.0.0.11", "STREAMSVM_HTTP_SERVICE_PORT": "8080"}
    path = write(tmp_path, "")
    assert load(path, {**service, "STREAMSVM_HTTP_PORT": "8081"}).http.port == 8081
    (problem,) = problems(path, {**service, "STREAMSVM_HTTP_PROT": "8081"})
    assert problem.startswith("STREAMSVM_HTTP_PROT: http.prot is unknown")
    (problem,) = problems(path, {"STREAMSVM_HTTP_SERVICE_HOST": "10.0.0.11"})  # Kubernetes sets several
    assert problem.startswith("STREAMSVM_HTTP_SERVICE_HOST: http.service_host is unknown")


def test_every_problem_is_reported_at_once(tmp_path):
    path = write(
        tmp_path,
        "[log]\ntopik = 'x'\n[model]\nC = -1\ngamma = 0\nkernel = 'rfb'\n[modle]\nC = 1\n[label]\npositive = 'spam'\n",
    )
    found = problems(path, {"STREAMSVM_DAEMON_BATCH": "0"}, ["daemon.keep", "daemon.batch=many"], log_must_exist=True)
    expected = [
        "unknown section [modle]; did you mean 'model'?",
        "log.topik is unknown; did you mean 'topic'?",
        "model.C=-1.0 must be a positive finite number",
        "model.gamma=0.0 must be a positive finite number",
        "model.kernel='rfb' is unknown; use one of 'rbf', 'linear', 'poly', 'sigmoid'",
        "STREAMSVM_DAEMON_BATCH: daemon.batch = '0' must be at least 1",
        "--set daemon.keep: expected section.key=value",
        "--set: daemon.batch = 'many' must be a whole number",
        "label.positive and label.negative must both be given",
        f"log.dir = {str(tmp_path / 'log')!r}: there is no such folder",
    ]
    assert len(found) == len(expected)
    for message in expected:
        assert any(message in problem for problem in found), message
    assert sum(str(path) in problem for problem in found) == 5


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("model.C", "nan"),
        ("model.gamma", "1e300"),
        ("model.budget", "99999999999999999999"),
        ("model.cache_mb", "1e300"),
        ("model.window", "99999999999999999999"),
        ("model.reprocess", "99999999999999999999"),
        ("join.ttl_seconds", "1e300"),
        ("join.ttl_seconds", "1e-9"),
        ("join.pending_mb", "1e300"),
        ("log.segment_mb", "1e300"),
        ("daemon.batch", "99999999999999999999"),
        ("daemon.watchdog_seconds", "1e300"),
        ("estimates.folds", "1"),
        ("estimates.folds", "99999999999999999999"),
        ("http.host", '""'),
        ("http.host", '"127.0.0.1:80/"'),
        ("daemon.state_dir", '""'),
        ("log.dir", '"a\\u0000"'),
        ("log.segment_mb", "1e-300"),
        ("labelling.host", '" "'),
        ("labelling.lease_seconds", "1e300"),
        ("model.C", "inf"),
        ("model.C", "true"),
        ("model.C", '"1"'),
        ("model.gamma", "-0.5"),
        ("model.gamma", '"auto"'),
        ("model.scaling", '"minmax"'),
        ("model.pos_weight", '"balance"'),
        ("model.pos_weight", "0"),
        ("model.threshold", '"g-mean"'),
        ("model.threshold", "inf"),
        ("model.degree", "2.0"),
        ("model.coef0", "inf"),
        ("model.reprocess", "-1"),
        ("model.reprocess", '"often"'),
        ("model.reprocess", "1.5"),
        ("model.delta_max", "0"),
        ("model.budget", "2"),
        ("model.budget", "1e3"),
        ("model.on_budget", '"drop"'),
        ("model.window", "0"),
        ("model.window", '"7"'),
        ("model.window", '"0d"'),
        ("model.window", '"7 days"'),
        ("model.window", "1.5"),
        ("model.algorithm", '"svm"'),
        ("features.names", '"a"'),
        ("features.names", "[1]"),
        ("features.names", '["a", "a"]'),
        ("log.topic", '"a/b"'),
        ("log.segment_mb", "0"),
        ("daemon.batch", "1.5"),
        ("daemon.max_bad", "1.1"),
        ("daemon.follow", "1"),
        ("daemon.state_dir", "3"),
        ("daemon.per", '"user"'),
        ("daemon.max_models", "0"),
        ("daemon.start", '"now"'),
        ("daemon.on_data_loss", '"ignore"'),
        ("daemon.exactly_once", "1"),
        ("daemon.log_format", '"xml"'),
        ("daemon.watchdog_seconds", "-1"),
        ("daemon.shutdown_seconds", "0"),
        ("daemon.publish_seconds", "0"),
        ("log.labels", '"a/b"'),
        ("log.format", '"xml"'),
        ("join.ttl_seconds", "0"),
        ("join.ttl_seconds", "inf"),
        ("join.pending_mb", "0"),
        ("join.max_skew_seconds", "nan"),
        ("group.id", '""'),
        ("group.instance", '"a b"'),
        ("group.instance", '"host-1"'),
        ("group.assign", '"3-1"'),
        ("group.assign", '"a"'),
        ("group.assign", '"0"'),
        ("http.port", "-1"),
        ("http.port", '"9100"'),
    ],
)
def test_wrong_values_are_refused_by_name(tmp_path, key, value):
    section, name = key.split(".")
    (problem,) = problems(write(tmp_path, f"[{section}]\n{name} = {value}\n"))
    assert key in problem or (problem.startswith(f"[{section}]: ") and name in problem)


@pytest.mark.parametrize("text", ["0-99999999999", "3-1", "0,3-1", "0,", "-1", "1-", "٣", ""])
def test_partitions_that_cannot_be_assigned(tmp_path, text):
    path = write(tmp_path, f"[group]\nassign = '{text}'\n[kafka]\nbootstrap_servers = 'a:1'\n")
    (problem,) = problems(path)
    assert "group.assign" in problem


def test_a_window_is_a_count_or_a_time(tmp_path):
    path = write(tmp_path, '[model]\nbudget = 500\non_budget = "merge"\nwindow = "7d"\n')
    parameters = load(path, {}).model.parameters()
    assert (parameters["budget"], parameters["on_budget"], parameters["window"]) == (500, "merge", timedelta(days=7))
    for text, window in (("10000", 10_000), ("90s", timedelta(seconds=90)), ("2w", timedelta(weeks=2))):
        assert load(path, {"STREAMSVM_MODEL_WINDOW": text}).model.parameters()["window"] == window
    assert load(path, {}).fingerprint()["model.window"] == "7d"
    (problem,) = problems(path, overrides=["model.kernel=poly"])
    assert problem.startswith('[model]: on_budget="merge" is for the kernels "rbf" and "linear"')
    unbounded = load(write(tmp_path, ""), {})
    assert (unbounded.model.parameters()["on_budget"], unbounded.fingerprint()["model.on_budget"]) == ("remove", None)


@pytest.mark.parametrize(("key", "value"), [("topic", "dlq"), ("labels", "events"), ("model", "scores")])
def test_topics_must_differ(tmp_path, key, value):
    (problem,) = problems(write(tmp_path, f"[log]\n{key} = '{value}'\n"))
    assert f"the topics must differ; there is more than one {value!r}" in problem


def test_transactions_need_a_group_and_a_checkpoint_to_go_back_to(tmp_path):
    text = "[daemon]\nexactly_once = true\nkeep = 1\n[group]\nassign = '0'\n[kafka]\nbootstrap_servers = 'x:1'\n"
    found = problems(write(tmp_path, text))
    assert len(found) == 2
    assert all("daemon.exactly_once needs" in problem for problem in found)


@pytest.mark.parametrize(
    ("seconds", "timeout_ms", "is_refused"),
    [(30, None, False), (600, None, False), (601, None, True), (30, 45_000, False), (30, 44_999, True)],
)
def test_a_transaction_must_last_from_checkpoint_to_checkpoint(tmp_path, seconds, timeout_ms, is_refused):
    text = f"[daemon]\nexactly_once = true\ncheckpoint_seconds = {seconds}\n[kafka]\nbootstrap_servers = 'x:1'\n"
    path = write(tmp_path, text + (f"transaction_timeout_ms = {timeout_ms}\n" if timeout_ms else ""))
    if not is_refused:
        assert load(path, {}).transaction_timeout_ms >= 1500 * seconds
        return
    (problem,) = problems(path)
    assert f"checkpoint_seconds = {seconds} needs transactions of {1.5 * seconds:g} seconds" in problem


def test_without_transactions_nothing_limits_the_time_between_checkpoints(tmp_path):
    text = "[daemon]\ncheckpoint_seconds = 3600\n[kafka]\nbootstrap_servers = 'x:1'\n"
    assert load(write(tmp_path, text), {}).daemon.checkpoint_seconds == 3600


def test_equal_label_names_are_refused(tmp_path):
    assert "differ" in problems(write(tmp_path, "[label]\npositive = 'a'\nnegative = 'a'\n"))[0]


def test_a_byte_order_mark_is_skipped(tmp_path):
    path = tmp_path / "app.toml"
    path.write_text("[model]\r\nC = 2.5\r\n", "utf-8-sig")
    assert load(path, {}).model.C == 2.5


def test_bad_toml_names_the_file_and_the_line(tmp_path):
    path = write(tmp_path, "[model]\nC = \n")
    (problem,) = problems(path)
    assert problem.startswith(f"{path}: ")
    assert "line 2" in problem


def test_a_key_outside_any_section_and_a_section_as_value(tmp_path):
    (problem,) = problems(write(tmp_path, "C = 1\n"))
    assert problem.endswith("C is in no section; did you mean model.C?")
    for text in ("model = 5\n", "[[model]]\nC = 1\n", "kafka = 'broker:9092'\n", "[[kafka]]\nclient_id = 'a'\n"):
        (problem,) = problems(write(tmp_path, text))
        assert re.search(r"(model|kafka) must be one section: write \[\1\], and its keys below it$", problem)
    (problem,) = problems(write(tmp_path, "[[modle]]\nC = 1\n"))
    assert problem.endswith("modle is in no section; did you mean 'model'?")


@pytest.mark.parametrize("content", [None, b"\xff\xfe"])
def test_an_unreadable_file_is_named(tmp_path, content):
    path = tmp_path / "app.toml"
    if content is not None:
        path.write_bytes(content)
    (problem,) = problems(path)
    assert problem.startswith(f"{path}: ")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("[log]\ndir = " + "[" * 100_000, "nested too deeply"),
        ("[log]\ndir = " + "{a=" * 50_000, "nested too deeply"),
        ("[model]\nC = " + "9" * 400, "must be a number"),
        ("[model]\nC = " + "9" * 5000, "limit"),
        ("[daemon]\nkeep = " + "9" * 400, "must be"),
        ('[kafka]\nbootstrap_servers = "a:1"\nsasl_plain_password_file = "\\u0000"', "cannot be read"),
    ],
)
def test_values_that_no_number_or_stack_holds(tmp_path, content, reason):
    assert any(reason in problem for problem in problems(write(tmp_path, content)))


@pytest.mark.parametrize("value", ["[" * 100_000, "9" * 400])
def test_flags_that_no_number_or_stack_holds(tmp_path, value):
    (problem,) = problems(write(tmp_path, ""), {}, [f"model.C={value}"])
    assert "must be a number" in problem


def test_the_fingerprint_is_all_that_a_model_depends_on(tmp_path):
    path = write(tmp_path, "")
    before = load(path, {}).fingerprint()
    for section in ("model", "features", "label"):
        names = {f"{section}.{item.name}" for item in fields(SECTIONS[section])}
        free = {
            "model.metric",
            "model.cache_mb",
            "label.classes",
            "label.max_classes",
            *(f"model.{name}" for name in GAP_FAMILY),
        }
        assert names - free <= set(before)
    of_nc = load(path, {}, ["model.algorithm=lasvm-nc"]).fingerprint()
    assert {f"model.{name}": of_nc[f"model.{name}"] for name in GAP_FAMILY} == {
        "model.clean_every": 300,
        "model.max_non_sv": 300,
        "model.steps": "pair",
        "model.ramp_s": -1.0,
        "model.ramp_warmup": 300,
    }
    assert load(path, {}, ["model.algorithm=lasvm-nc", "model.ramp_s=-1"]).fingerprint() == of_nc
    assert (
        load(path, {}, ["daemon.batch=1", "log.dir=x", "daemon.keep=9", "model.cache_mb=1.0"]).fingerprint() == before
    )
    for other in ("log.topic=other", "log.labels=labels", "daemon.per=key"):
        assert load(path, {}, [other]).fingerprint() != before


@pytest.mark.parametrize(
    ("algorithm", "given", "wrong"),
    [
        ("lasvm", {"ramp_s": 0, "delta_max": 1, "steps": "single"}, ["ramp_s", "steps"]),
        ("lasvm-g", {"reprocess": 1, "clean_every": 9, "ramp_warmup": 9}, ["reprocess", "ramp_warmup"]),
        ("lasvm-nc", {"delta_max": 1, "ramp_s": -2, "max_non_sv": 0}, ["delta_max"]),
        ("full", {"clean_every": 9, "steps": "single"}, ["clean_every"]),
    ],
)
def test_settings_of_another_algorithm_are_refused_by_name(tmp_path, algorithm, given, wrong):
    overrides = [f"model.{name}={value}" for name, value in {"algorithm": algorithm, **given}.items()]
    found = problems(write(tmp_path, ""), overrides=overrides)
    assert [text.partition(";")[0] for text in sorted(found)] == sorted(
        f"model.{name} is no setting of {algorithm!r}" for name in wrong
    )
    assert all("it belongs to 'lasvm" in text for text in found)
    right = [text for text in overrides if not any(text.startswith(f"model.{name}=") for name in wrong)]
    model = load(write(tmp_path, ""), {}, right).model
    made = model.implementation(**model.parameters())
    assert {name: getattr(made, name) for name in given if name not in wrong} == {
        name: value for name, value in given.items() if name not in wrong
    }


def test_a_model_for_a_rare_class(tmp_path):
    text = '[model]\npos_weight = "balanced"\nthreshold = "gmean"\ngamma = "scale"\nscaling = "none"\nreservoir = 0\n'
    settings = load(write(tmp_path, text), {})
    made = settings.model.implementation(**settings.model.parameters())
    assert (made.pos_weight, made.threshold, made.gamma) == ("balanced", "gmean", "scale")
    assert (made.scaling, made.reservoir) == (None, 0)
    fingerprint = settings.fingerprint()
    assert (fingerprint["model.pos_weight"], fingerprint["model.threshold"]) == ("balanced", "gmean")
    environment = {"STREAMSVM_MODEL_POS_WEIGHT": "2", "STREAMSVM_MODEL_THRESHOLD": "-0.5", "STREAMSVM_MODEL_GAMMA": "1"}
    model = load(write(tmp_path, text), environment).model
    assert (model.pos_weight, model.threshold, model.gamma) == (2.0, -0.5, 1.0)
    (problem,) = problems(write(tmp_path, text), {}, ["estimates.loo=true"])
    assert problem.startswith("estimates.loo and estimates.folds need model.threshold = 0")


@pytest.mark.parametrize("algorithm", LEARNERS)
def test_the_defaults_are_the_class_s(tmp_path, algorithm):
    settings = load(write(tmp_path, ""), {}, [f"model.algorithm={algorithm}"])
    defaults = {name: of.default for name, of in inspect.signature(LEARNERS[algorithm]).parameters.items()}
    assert settings.model.parameters() == {
        name: "standard" if name == "scaling" else defaults[name] for name in defaults
    }


@pytest.mark.parametrize(
    ("key", "value", "advice"),
    [
        ("features.scale", "none", "the model scales features itself now; instead, set model.scaling to"),
        ("features.warmup", "100", "the model scales features itself now, from the first event on; remove the key"),
        ("http.body_bytes", "16777216", "Label Studio may send 16 MiB in a request; remove the key"),
        ("limits.name_length", "256", "a feature's name may have 256 characters; remove the key"),
    ],
)
def test_a_key_of_an_earlier_version_says_what_to_do(tmp_path, key, value, advice):
    (problem,) = problems(write(tmp_path, ""), {}, [f"{key}={value}"])
    assert problem.startswith(f"--set: {key} is unknown: {advice}")


def test_absolute_folders_stay(tmp_path):
    assert load(write(tmp_path, "[log]\ndir = '/var/log'\n"), {}).log.dir == Path("/var/log")


# --- [kafka] ----------------------------------------------------------------------------------------------------------


def test_kafka_options_are_passed_on_as_they_are(tmp_path):
    path = write(tmp_path, "[kafka]\nbootstrap_servers = ['a:1', 'b:2']\nretries = 3\nlinger_ms = 1.5\n")
    assert load(path, {}).kafka == {"bootstrap_servers": ["a:1", "b:2"], "retries": 3, "linger_ms": 1.5}
    assert load(write(tmp_path, ""), {}).kafka == {}


def test_an_empty_kafka_section_does_not_pass_for_the_embedded_log(tmp_path):
    path = write(tmp_path, "[kafka]\n")
    (problem,) = problems(path, log_must_exist=True)
    assert problem.startswith(f"{path}: [kafka] is empty: set kafka.bootstrap_servers")
    assert load(path, {"STREAMSVM_KAFKA_BOOTSTRAP_SERVERS": "a:1"}).kafka == {"bootstrap_servers": "a:1"}


def test_kafka_options_have_the_same_layers(tmp_path):
    path = write(tmp_path, "[kafka]\nbootstrap_servers = 'file:1'\nclient_rack = 'file'\nacks = 'all'\n")
    environment = {"STREAMSVM_KAFKA_BOOTSTRAP_SERVERS": "env:1", "STREAMSVM_KAFKA_CLIENT_RACK": "env"}
    settings = load(path, environment, ["kafka.client_rack=flag"])
    assert settings.kafka == {"bootstrap_servers": "env:1", "client_rack": "flag", "acks": "all"}
    assert load(write(tmp_path, ""), environment).kafka["bootstrap_servers"] == "env:1"


SASL = "[kafka]\nbootstrap_servers = 'a:1'\nsecurity_protocol = 'SASL_SSL'\nsasl_mechanism = 'PLAIN'\n"


@pytest.mark.parametrize("layer", ["file", "environment", "flag"])
def test_a_secret_comes_from_a_file(tmp_path, layer):
    folder = tmp_path / "secrets"
    folder.mkdir()
    (folder / "password").write_text("hunter2\n")
    line = "sasl_plain_password_file = 'secrets/password'"  # relative to the configuration
    path = write(tmp_path, f"{SASL}sasl_plain_username = 'u'\n{line if layer == 'file' else ''}\n")
    environment = {"STREAMSVM_KAFKA_SASL_PLAIN_PASSWORD_FILE": "secrets/password"} if layer == "environment" else {}
    flags = ["kafka.sasl_plain_password_file=secrets/password"] if layer == "flag" else []
    settings = load(path, environment, flags)
    assert settings.kafka == {
        "bootstrap_servers": "a:1",
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "PLAIN",
        "sasl_plain_username": "u",
        "sasl_plain_password": "hunter2",
    }
    (tmp_path / "mounted").write_text("of the environment")
    mounted = {"STREAMSVM_KAFKA_SASL_PLAIN_PASSWORD_FILE": str(tmp_path / "mounted")}
    if layer == "file":
        assert load(path, mounted).kafka == {**settings.kafka, "sasl_plain_password": "of the environment"}


@pytest.mark.parametrize("content", [None, b"\xff"])
def test_a_secret_that_cannot_be_read_is_a_problem_like_others(tmp_path, content):
    if content:
        (tmp_path / "password").write_bytes(content)
    path = write(tmp_path, f"[model]\nC = 0\n{SASL}sasl_plain_username = 'u'\nsasl_plain_password_file = 'password'\n")
    found = problems(path)
    assert len(found) == 2
    assert any("kafka.sasl_plain_password_file = 'password' cannot be read" in problem for problem in found)


def test_secrets_are_shown_nowhere(tmp_path):
    (tmp_path / "password").write_text("hunter2")
    text = f"{SASL}sasl_plain_username = 'u'\nsasl_plain_password_file = 'password'\n"
    settings = load(write(tmp_path, text), {})
    assert "hunter2" not in f"{settings!r} {settings}"
    assert "hunter2" not in repr(settings.fingerprint())
    assert settings.fingerprint() == load(write(tmp_path, ""), {}).fingerprint()
    (problem,) = problems(write(tmp_path, text + "[model]\nC = 0\n"))
    assert "hunter2" not in problem


def test_with_kafka_there_need_be_no_folder_of_a_log(tmp_path):
    path = write(tmp_path, "[kafka]\nbootstrap_servers = 'a:1'\n[group]\ninstance = 'host-1'\nassign = '0-3,7'\n")
    settings = load(path, {}, log_must_exist=True)
    assert parse_partitions(settings.group.assign) == [0, 1, 2, 3, 7]


def test_names_of_options_of_the_kafka_client_are_checked(tmp_path):
    path = write(tmp_path, '[kafka]\nbootstrap_server = "x:1"\ngroup_id = "mine"\nvalue_deserializer = "x"\n')
    assert problems(path) == [
        f"{path}: kafka.bootstrap_server is no option of kafka-python; did you mean 'bootstrap_servers'?",
        f"{path}: kafka.group_id cannot be set: it is group.id",
        f"{path}: kafka.value_deserializer cannot be set: it is an object of Python",
        "kafka.bootstrap_servers is missing: the address of a broker, such as 'localhost:9092'",
    ]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("security_protocol", '"SASL_SLL"'),
        ("security_protocol", '"SSLL"'),
        ("security_protocol", '"ssl"'),
        ("security_protocol", '""'),
        ("security_protocol", "1"),
        ("sasl_mechanism", '"plain"'),
        ("sasl_mechanism", '"OAUTHBEARER"'),  # its tokens come from an object of Python
        ("sasl_plain_password", "12345"),
        ("sasl_plain_password", '""'),
        ("sasl_plain_username", "true"),
        ("compression_type", '"brotli"'),
        ("acks", '"most"'),
        ("acks", "2"),
        ("acks", "true"),
        ("isolation_level", '"committed"'),
        ("client_dns_lookup", '"some"'),
        ("linger_ms", '"x"'),
        ("linger_ms", '"5"'),
        ("linger_ms", "-1"),
        ("linger_ms", "nan"),
        ("session_timeout_ms", '"6s"'),
        ("session_timeout_ms", "0"),
        ("session_timeout_ms", "6.5"),
        ("fetch_max_bytes", "4294967296"),
        ("retries", "-1"),
        ("check_crcs", '"yes"'),
        ("check_crcs", "1"),
        ("api_version", '"4.3"'),
        ("socket_options", "[[6, 1]]"),
        ("proxy_url", '"proxy:1080"'),
        ("bootstrap_servers", '"broker"'),
        ("bootstrap_servers", '"broker:http"'),
        ("bootstrap_servers", '"broker:0"'),
        ("bootstrap_servers", '"a:1,"'),
        ("bootstrap_servers", '["a:1", "b"]'),
        ("bootstrap_servers", '"SSL://broker:9093"'),
        ("bootstrap_servers", '"::1"'),
        ("bootstrap_servers", "[]"),
        ("bootstrap_servers", "9092"),
    ],
)
def test_wrong_values_of_the_kafka_client_are_refused_by_name(tmp_path, key, value):
    others = "" if key == "bootstrap_servers" else "bootstrap_servers = 'a:1'\n"
    path = write(tmp_path, f"[kafka]\n{others}{key} = {value}\n")
    (problem,) = problems(path)
    assert problem.startswith(f"{path}: kafka.{key} = ")
    assert " must be " in problem


def test_the_right_spelling_of_a_choice_is_named(tmp_path):
    path = write(tmp_path, "[kafka]\nbootstrap_servers = 'a:1'\nsecurity_protocol = 'SASL_SLL'\n")
    assert problems(path)[0].endswith("; did you mean 'SASL_SSL'?")


@pytest.mark.parametrize(
    "servers", ['"a:1"', '"a:1, b-2.example.org:65535"', '["a:1", "[::1]:9092"]', '"10.0.0.7:9092"']
)
def test_addresses_of_brokers(tmp_path, servers):
    load(write(tmp_path, f"[kafka]\nbootstrap_servers = {servers}\n"), {})


def test_text_becomes_what_an_option_takes(tmp_path):
    path = write(tmp_path, f"{SASL}sasl_plain_username = 'u'\n")
    environment = {
        "STREAMSVM_KAFKA_SASL_PLAIN_PASSWORD": "12345",  # a string, though it looks like a number
        "STREAMSVM_KAFKA_CLIENT_ID": "7",
        "STREAMSVM_KAFKA_ACKS": "-1",
        "STREAMSVM_KAFKA_LINGER_MS": "0.5",
        "STREAMSVM_KAFKA_CHECK_CRCS": "false",
        "STREAMSVM_KAFKA_API_VERSION": "[4, 0]",
        "STREAMSVM_KAFKA_COMPRESSION_TYPE": "none",
    }
    found = load(path, environment, ['kafka.bootstrap_servers=["a:1", "b:2"]']).kafka
    assert {key: found[key] for key in ("sasl_plain_password", "client_id", "acks", "linger_ms", "check_crcs")} == {
        "sasl_plain_password": "12345",
        "client_id": "7",
        "acks": -1,
        "linger_ms": 0.5,
        "check_crcs": False,
    }
    assert (found["api_version"], found["compression_type"], found["bootstrap_servers"]) == (
        (4, 0),
        None,
        ["a:1", "b:2"],
    )


def test_a_later_layer_wins_over_a_file_of_an_earlier_one(tmp_path):
    (tmp_path / "password").write_text("of the file")
    path = write(tmp_path, f"{SASL}sasl_plain_username = 'u'\nsasl_plain_password = 'x'\n")
    environment = {"STREAMSVM_KAFKA_SASL_PLAIN_PASSWORD_FILE": "password"}
    for flags, expected in ([], "of the file"), (["kafka.sasl_plain_password=flag"], "flag"):
        assert load(path, environment, flags).kafka["sasl_plain_password"] == expected


@pytest.mark.parametrize("protocol", ["", "security_protocol = 'PLAINTEXT'\n", "security_protocol = 'SSL'\n"])
def test_credentials_are_never_left_out(tmp_path, protocol):
    path = write(tmp_path, f"[kafka]\nbootstrap_servers = 'a:1'\n{protocol}sasl_plain_username = 'u'\n")
    (problem,) = problems(path)
    assert "kafka.sasl_plain_username" in problem
    assert "does not authenticate" in problem


@pytest.mark.parametrize("protocol", ["", "security_protocol = 'PLAINTEXT'\n"])
def test_certificates_are_never_left_out(tmp_path, protocol):
    (tmp_path / "ca.pem").write_text("")
    path = write(tmp_path, f"[kafka]\nbootstrap_servers = 'a:1'\n{protocol}ssl_check_hostname = true\n")
    (problem,) = problems(path)
    assert "kafka.ssl_check_hostname" in problem
    assert "does not encrypt" in problem


def test_a_misspelled_protocol_is_one_problem(tmp_path):
    path = write(tmp_path, SASL.replace("SASL_SSL", "SASL_SLL") + "sasl_plain_username = 'u'\n")
    (problem,) = problems(path)
    assert "kafka.security_protocol = 'SASL_SLL'" in problem


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('[log]\nmerged = "m"', "log.merged needs log.model"),
        ("[daemon]\npublish_json = true", "daemon.publish_json needs log.model"),
        (
            '[log]\nmodel = "m"\n[model]\nalgorithm = "mixture"\n[daemon]\npublish_json = true',
            'does not go with model.algorithm = "mixture"',
        ),
        (
            '[log]\nmodel = "m"\n[features]\nraw = true\nembed = {a = "wordllama"}\n[daemon]\npublish_json = true',
            "does not go with features.embed",
        ),
        ('[scorer]\nmodel = "merged"', 'scorer.model = "merged" needs log.merged'),
        ('[daemon]\nbegin = "merged"', 'daemon.begin = "merged" needs log.merged'),
        ('[daemon]\nper = "key"\n[log]\nmodel = "a"\nmerged = "m"', 'log.merged needs daemon.per = "partition"'),
        ('[model]\nalgorithm = "auto"\n[log]\nmodel = "a"\nmerged = "m"', "log.merged needs one kind of model"),
        ('[model]\nalgorithm = "mixture"\n[decide]\nerror = 0.1', "decide.error does not go with"),
        ('[model]\nalgorithm = "mixture"\n[log]\nlabels = "l"\nquestions = "q"', "log.questions needs one model"),
        ('[model]\nalgorithm = "mixture"\n[estimates]\nloo = true', "are estimates of one learner"),
        ('[log]\nstate = "s"', 'log.state, the topic of the checkpoints, needs state.store = "topic"'),
        ('[state]\nstore = "topic"', 'state.store = "topic" needs log.state'),
        ('[state]\nstore = "objects"', 'state.store = "objects" needs state.url'),
        ('[state]\nurl = "s3://bucket/p"', 'state.url, the place of the objects, needs state.store = "objects"'),
        ('[log]\nformat = "registry"', 'log.format = "registry" needs schema.registry'),
        ('[schema]\nregistry = "http://r"', "schema.registry, the address of a schema registry, needs log.format"),
        ('[schema]\nuser = "u"', "schema.user needs schema.password"),
        ('[schema]\npassword = "p"', "schema.password needs schema.user"),
    ],
)
def test_settings_beyond_one_machine_that_lack_something(tmp_path, text, expected):
    (tmp_path / "app.toml").write_text(text)
    with pytest.raises(ConfigError) as found:
        load(tmp_path / "app.toml", {})
    (problem,) = found.value.problems
    assert expected in problem


@pytest.mark.parametrize("url", ["bucket", "s3://", "http://host/bucket", "s3://key:secret@bucket", "file://host/x"])
def test_what_is_no_object_store(tmp_path, url):
    found = problems(write(tmp_path, f'[state]\nstore = "objects"\nurl = "{url}"\n'))
    assert "must be the URL of an object store without credentials" in found[0]


def test_what_an_authentication_needs(tmp_path):
    assert problems(write(tmp_path, SASL)) == [
        "kafka.sasl_plain_username is missing: PLAIN needs it",
        "kafka.sasl_plain_password is missing: PLAIN needs it",
    ]
    (problem,) = problems(write(tmp_path, "[kafka]\nbootstrap_servers = 'a:1'\nsecurity_protocol = 'SASL_SSL'\n"))
    assert problem.startswith("kafka.sasl_mechanism is missing: SASL_SSL needs one of ")


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("ssl_cafile = 'none.pem'", "kafka.ssl_cafile = 'none.pem': there is no such file"),
        ("ssl_cafile = FILE", "kafka.ssl_cafile cannot be used: "),
        ("ssl_keyfile = FILE", "kafka.ssl_keyfile needs kafka.ssl_certfile"),
        ("ssl_ciphers = 'HIGH'", "kafka.ssl_ciphers has no effect"),
    ],
)
def test_certificates_that_cannot_be_used(tmp_path, lines, expected):
    (tmp_path / "no.pem").write_text("no certificate")
    text = "[kafka]\nbootstrap_servers = 'a:1'\nsecurity_protocol = 'SSL'\n"
    found = problems(write(tmp_path, text + lines.replace("FILE", f"'{tmp_path / 'no.pem'}'") + "\n"))
    assert any(problem.startswith(expected) for problem in found)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("session_timeout_ms = 3000", "kafka.heartbeat_interval_ms = 3000 must be less than kafka.session_timeout_ms"),
        ("request_timeout_ms = 500", "kafka.fetch_max_wait_ms = 500 must be less than kafka.request_timeout_ms = 500"),
        ("delivery_timeout_ms = 1000", "kafka.delivery_timeout_ms = 1000 must be at least kafka.linger_ms = 50 and"),
        ("enable_idempotence = true\nacks = 1", "kafka.acks = 1 contradicts kafka.enable_idempotence"),
        ("acks = 0\n[daemon]\nexactly_once = true", "kafka.acks = 0 contradicts daemon.exactly_once"),
    ],
)
def test_options_that_contradict_each_other(tmp_path, text, expected):
    (problem,) = problems(write(tmp_path, f"[kafka]\nbootstrap_servers = 'a:1'\n{text}\n"))
    assert problem.startswith(expected)


@pytest.mark.parametrize(
    ("text", "flags"),
    [
        (f"{SASL}sasl_plain_password = 12345\n", []),
        (f"{SASL}sasl_plain_pasword = '12345'\n", []),
        ("[log]\nsasl_plain_password = '12345'\n", []),
        ("[kafak]\nsasl_plain_password = '12345'\n", []),
        ("", ["sasl_plain_password=12345"]),
        ("", ["kafak.sasl_plain_password=12345"]),
        ("", ["log.sasl_plain_password=12345"]),
        ("", ["kafka.sasl_plain_pasword=12345"]),
        ("", ["12345"]),
        ("", ["kafka.proxy_url=socks5:u:12345@host"]),
        ("", ["kafka.bootstrap_servers=u:12345@host:9092"]),
    ],
)
def test_no_message_repeats_a_secret(tmp_path, text, flags):
    assert not any("12345" in problem for problem in problems(write(tmp_path, text), overrides=flags))


def test_every_option_of_the_clients_has_a_type():
    """One that a new version brings must not pass for a string by accident."""
    for client in (KafkaConsumer, KafkaProducer, KafkaAdminClient):
        for key, default in client.DEFAULT_CONFIG.items():
            if key in OPTIONS:
                types = OPTIONS[key].types
                assert default is None or type(default) in types or default == float("inf")
            else:
                assert (
                    default is None
                    or isinstance(default, list | tuple | type)
                    or callable(default)
                    or key == "partitioner"
                )


def test_schemas_that_cannot_be_used_are_a_problem_of_the_configuration(tmp_path):
    (problem,) = problems(write(tmp_path, "[log]\nformat = 'avro'\n"))
    assert problem.startswith("log.format = 'avro': ")


@pytest.mark.parametrize(
    "flags",
    [
        ["kafka.max_request_size=1000000"],
        ["limits.dead_letter_kb=20000"],
        ["limits.dead_letter_kb=2000", "kafka.max_request_size=2000000"],
    ],
)
def test_every_output_must_go_into_a_request(tmp_path, flags):
    path = tmp_path / "app.toml"
    path.write_text('[kafka]\nbootstrap_servers = "nowhere:1"\n')
    with pytest.raises(ConfigError, match=r"kafka\.max_request_size = .* must be at least"):
        load(path, {}, flags)
    load(path, {}, ["kafka.max_request_size=3000000", "limits.dead_letter_kb=2000"])


def test_a_file_that_cannot_be_read_is_one_problem(tmp_path):
    """The rest depends on it: with [log] unread, nothing can be said about its folder."""
    for text in ("[log", "[log]\ndir = [[["):
        with pytest.raises(ConfigError) as refused:
            load(write(tmp_path, text), {}, log_must_exist=True)
        assert len(refused.value.problems) == 1


# --- several classes --------------------------------------------------------------------------------------------------


def test_classes_are_texts_and_whole_numbers(tmp_path):
    settings = load(write(tmp_path, '[label]\nclasses = ["cat", 2, "3"]'), {})
    assert settings.label.vocabulary.listed == ("cat", 2, 3)
    assert not settings.label.vocabulary.is_open
    assert load(write(tmp_path, ""), {}, ["label.max_classes=20"]).label.vocabulary.is_open


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('[label]\nclasses = ["a", "b"]', "lists 2 of 3 classes"),
        ('[label]\nclasses = ["7", 7, 8]', "7 twice"),
        ('[label]\nclasses = ["", "b", "c"]', "printable"),
        ('[label]\nclasses = ["skip", "b", "c"]', "in place of a class"),
        ("[label]\nclasses = [1.5, 2, 3]", "a list of strings and whole numbers"),
        ("[label]\nmax_classes = 2", "from 3 to 1000"),
        ("[label]\nclasses = [1, 2, 3, 4]\nmax_classes = 3", "less than the 4"),
        ('[label]\nclasses = [1, 2, 3]\npositive = "a"\nnegative = "b"', "name two classes"),
        ("[label]\nclasses = [1, 2, 3]\n[model]\nthreshold = 0.5", "threshold=0.5"),
        ("[label]\nclasses = [1, 2, 3]\n[labelling]\nrare_first = true\nselection = 'auto'", 'selection = "auto"'),
        ("[labelling]\nrare_first = true", "needs more than two classes"),
        ("[limits]\nevent_features = 9\nmodel_features = 8", "event_features must not be larger than limits.model_f"),
    ],
)
def test_settings_that_several_classes_do_not_go_with(tmp_path, content, said):
    assert any(said in problem for problem in problems(write(tmp_path, content)))


RAW = {
    'id = "a"\nkinds = {b = "text"}': "features.id, features.kinds: raw events have this; set features.raw = true",
    'raw = true\nnames = ["a"]': "features.names does not go with features.raw",
    'raw = true\nid = "a"\ntime = "a"': "must name different fields",
    'raw = true\nlabel = "a"\nkinds = {a = "text"}': "features.kinds names 'a', which is no feature",
    'raw = true\nkinds = {a = "word"}': "must be a table of fields and kinds: 'number', ",
    "raw = true\nkinds = {a = 1}": 'must be a table of strings, such as { zip = "category" }',
    'raw = true\nthousands = "."': "features.thousands = '.' must be one sign, such as ','",
    'transform = "mine"': "features.transform = 'mine' must be a function, such as 'package.module:function'",
    'transform = "no_such_module:f"': "features.transform = 'no_such_module:f': ModuleNotFoundError: No module named",
    'transform = "math:no"': "features.transform = 'math:no': AttributeError",
    'transform = "math:pi"': "features.transform = 'math:pi' is 3.14",
    'embed = {a = "wordllama"}': "features.embed: raw events have this; set features.raw = true",
    "raw = true\nembed = {a = 'a b'}": "must be a table of fields and embedders: 'wordllama' or 'package.module:NAME'",
    "raw = true\nembed = {a = 'math:pi'}": "features.embed: embed['a']='math:pi' is no embedder",
    "raw = true\nembed = {a = 'no_such_module:f'}": "features.embed: No module named 'no_such_module'",
    'raw = true\nembed = {a = "mine"}': "features.embed: embed['a']='mine' is no embedder",
    'raw = true\nlabel = "a"\nembed = {a = "of_this_user:Mini"}': "features.embed names 'a', which is no feature",
    'raw = true\n[log]\nformat = "float32"': 'features.raw does not go with log.format = "float32"',
    'transform = "math:sin"\n[log]\nformat = "float32"': "features.transform does not go with log.format",
    'raw = true\n[log]\nmodel = "m"\nmerged = "n"': "log.merged does not go with features.raw",
}


@pytest.mark.parametrize("text", RAW)
def test_settings_of_features_that_cannot_be(tmp_path, text):
    (found,) = problems(write(tmp_path, f"[features]\n{text}\n"))
    assert RAW[text] in found


def test_an_embedder_of_the_user_lies_beside_the_configuration(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "of_another_user", raising=False)
    (tmp_path / "of_another_user.py").write_text(
        "class Mini:\n    name, size, embed_one = 'mini', 1, lambda _, text: [len(text)]\n"
    )
    path = write(tmp_path, '[features]\nembed = {note = "of_another_user:Mini"}\nraw = true\n')
    records = load(path, {}).features.records()
    records.learn_one({"note": "a word"})
    assert records.transform_one({"note": "a word"})["~note:0"] == 3.0
    assert load(path, {}).fingerprint() != load(write(tmp_path, "[features]\nraw = true\n"), {}).fingerprint()


def test_a_function_of_the_user_lies_beside_the_configuration(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "of_this_user.py").write_text("def features(event):\n    return {'n': len(event)}\n")
    path = write(tmp_path, '[features]\ntransform = "of_this_user:features"\nkinds = {"a.b" = "text"}\nraw = true\n')
    settings = load(path, {})
    record = Record("events", 0, 0, 0, None, b'{"id": 1, "a": 2}', ())
    assert settings.codec().decode(record).x == {"n": 2}
    assert settings.features.records().kinds == {"a.b": "text"}
    assert load(path, {"STREAMSVM_FEATURES_KINDS": '{z = "time"}'}).features.kinds == {"z": "time"}


def test_more_classes_may_be_listed_but_two_stay_two(tmp_path):
    def fingerprint(text):
        return load(write(tmp_path, text), {}).fingerprint()

    assert fingerprint("[label]\nclasses = [1, 2, 3]") == fingerprint("[label]\nclasses = [1, 2, 3, 4]")
    assert fingerprint("[label]\nclasses = [1, 2, 3]") != fingerprint("")


def test_each_contradiction_is_about_settings_that_there_are():
    """A name that is none raises an AttributeError."""
    for given, other, _ in (*contradictions.NEEDS, *contradictions.EXCLUDES):
        contradictions.value_of(given, Settings())
        contradictions.value_of(other, Settings())
