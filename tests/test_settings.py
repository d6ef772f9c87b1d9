"""The configuration: three layers, and every problem at once."""

import re
import tomllib
from dataclasses import fields
from datetime import timedelta
from pathlib import Path

import pytest

from streamsvm.connectors.settings import SECTIONS, ConfigError, load, parse_partitions

GAP_FAMILY = ("clean_every", "max_non_sv", "steps", "ramp_s", "ramp_warmup")  # settings that lasvm has not


def write(tmp_path, text):
    path = tmp_path / "app.toml"
    path.write_text(text)
    return path


def problems(path, environment=None, overrides=(), **options):
    with pytest.raises(ConfigError) as caught:
        load(path, environment or {}, overrides, **options)
    assert str(caught.value) == "\n".join(caught.value.problems)
    return caught.value.problems


def test_an_empty_file_gives_the_defaults(tmp_path):
    settings = load(write(tmp_path, ""), {})
    assert (settings.model.C, settings.model.kernel, settings.daemon.batch) == (1.0, "rbf", 64)
    assert settings.log.dir == tmp_path / "log"
    assert settings.daemon.state_dir == tmp_path / "state"


def test_the_example_shows_every_setting_with_its_default(tmp_path):
    text = (Path(__file__).parents[1] / "examples" / "app.toml").read_text()
    assert load(write(tmp_path, text), {}) == load(write(tmp_path, ""), {})
    shown = re.sub(r"^# (?=\w+ = |\[)", "", text, flags=re.MULTILINE)
    keys = tomllib.loads(shown)
    assert keys.keys() - {"kafka"} == SECTIONS.keys()
    for name, section in SECTIONS.items():
        assert set(keys[name]) == {item.name for item in fields(section)}
    assert keys["kafka"].keys() >= {"bootstrap_servers", "security_protocol", "sasl_plain_password_file"}


def test_file_then_environment_then_flags(tmp_path):
    path = write(tmp_path, "[model]\nC = 1\ngamma = 1\ntau = 0.1\n[daemon]\nbatch = 8\n")
    environment = {"STREAMSVM_MODEL_GAMMA": "2", "STREAMSVM_MODEL_TAU": "0.2", "STREAMSVM_DAEMON_MAX_BAD": "0.5"}
    settings = load(path, environment, ["model.tau=0.3", "daemon.max_bad = 1"])
    assert (settings.model.C, settings.model.gamma, settings.model.tau) == (1.0, 2.0, 0.3)
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


def test_other_variables_are_left_alone(tmp_path):
    load(write(tmp_path, ""), {"STREAMSVM_CACHE": "0", "STREAMSVM_TEST_BOOTSTRAP": "x", "HOME": "/"})


def test_every_problem_is_reported_at_once(tmp_path):
    path = write(
        tmp_path,
        "[log]\ntopik = 'x'\n[model]\nC = -1\ngamma = 0\nkernel = 'rfb'\n[modle]\nC = 1\n[label]\npositive = 'spam'\n",
    )
    found = problems(
        path, {"STREAMSVM_DAEMON_BATCH": "0"}, ["daemon.keep", "features.warmup=many"], log_must_exist=True
    )
    expected = [
        "unknown section [modle]; did you mean 'model'?",
        "log.topik = 'x' is unknown; did you mean 'topic'?",
        "model.C = -1 must be a positive number",
        "model.gamma = 0 must be a positive number",
        "model.kernel = 'rfb' must be one of 'rbf', 'linear', 'poly', 'sigmoid'",
        "STREAMSVM_DAEMON_BATCH: daemon.batch = '0' must be at least 1",
        "--set daemon.keep: expected section.key=value",
        "--set features.warmup=many: features.warmup = 'many' must be a whole number",
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
        ("model.C", "inf"),
        ("model.C", "true"),
        ("model.C", '"1"'),
        ("model.gamma", "-0.5"),
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
        ("features.scale", '"robust"'),
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
    assert key in problem


def test_a_window_is_a_count_or_a_time(tmp_path):
    path = write(tmp_path, '[model]\nbudget = 500\non_budget = "merge"\nwindow = "7d"\n')
    parameters = load(path, {}).model.parameters()
    assert (parameters["budget"], parameters["on_budget"], parameters["window"]) == (500, "merge", timedelta(days=7))
    for text, window in (("10000", 10_000), ("90s", timedelta(seconds=90)), ("2w", timedelta(weeks=2))):
        assert load(path, {"STREAMSVM_MODEL_WINDOW": text}).model.parameters()["window"] == window
    assert load(path, {}).fingerprint()["model.window"] == "7d"
    (problem,) = problems(path, overrides=["model.kernel=poly"])
    assert "model.on_budget = 'merge' needs model.kernel" in problem
    unbounded = load(write(tmp_path, ""), {})
    assert (unbounded.model.parameters()["on_budget"], unbounded.fingerprint()["model.on_budget"]) == ("remove", None)


@pytest.mark.parametrize(("key", "value"), [("topic", "dlq"), ("labels", "events"), ("model", "scores")])
def test_topics_must_differ(tmp_path, key, value):
    (problem,) = problems(write(tmp_path, f"[log]\n{key} = '{value}'\n"))
    assert f"the topics of [log] must differ; there is more than one {value!r}" in problem


def test_transactions_need_a_group_and_a_checkpoint_to_go_back_to(tmp_path):
    text = "[daemon]\nexactly_once = true\nkeep = 1\n[group]\nassign = '0'\n[kafka]\nbootstrap_servers = 'x:1'\n"
    found = problems(write(tmp_path, text))
    assert len(found) == 2
    assert all("daemon.exactly_once needs" in problem for problem in found)


def test_equal_label_names_are_refused(tmp_path):
    assert "differ" in problems(write(tmp_path, "[label]\npositive = 'a'\nnegative = 'a'\n"))[0]


def test_bad_toml_names_the_file_and_the_line(tmp_path):
    path = write(tmp_path, "[model]\nC = \n")
    (problem,) = problems(path)
    assert problem.startswith(f"{path}: ")
    assert "line 2" in problem


def test_a_key_outside_any_section_and_a_section_as_value(tmp_path):
    (problem,) = problems(write(tmp_path, "C = 1\n"))
    assert "unknown section [C]" in problem


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
        assert names - {"model.cache_mb"} - {f"model.{name}" for name in GAP_FAMILY} <= set(before)
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


def test_absolute_folders_stay(tmp_path):
    assert load(write(tmp_path, "[log]\ndir = '/var/log'\n"), {}).log.dir == Path("/var/log")


# --- [kafka] ----------------------------------------------------------------------------------------------------------


def test_kafka_options_are_passed_on_as_they_are(tmp_path):
    path = write(tmp_path, "[kafka]\nbootstrap_servers = ['a:1', 'b:2']\nretries = 3\nlinger_ms = 1.5\n")
    assert load(path, {}).kafka == {"bootstrap_servers": ["a:1", "b:2"], "retries": 3, "linger_ms": 1.5}
    assert load(write(tmp_path, ""), {}).kafka == {}


def test_kafka_options_have_the_same_layers(tmp_path):
    path = write(tmp_path, "[kafka]\nbootstrap_servers = 'file:1'\nclient_rack = 'file'\nacks = 'all'\n")
    environment = {"STREAMSVM_KAFKA_BOOTSTRAP_SERVERS": "env:1", "STREAMSVM_KAFKA_CLIENT_RACK": "env"}
    settings = load(path, environment, ["kafka.client_rack=flag"])
    assert settings.kafka == {"bootstrap_servers": "env:1", "client_rack": "flag", "acks": "all"}
    assert load(write(tmp_path, ""), environment).kafka["bootstrap_servers"] == "env:1"


@pytest.mark.parametrize("layer", ["file", "environment", "flag"])
def test_a_secret_comes_from_a_file(tmp_path, layer):
    folder = tmp_path / "secrets"
    folder.mkdir()
    (folder / "password").write_text("hunter2\n")
    line = "sasl_plain_password_file = 'secrets/password'"  # relative to the configuration
    path = write(tmp_path, f"[kafka]\nbootstrap_servers = 'a:1'\n{line if layer == 'file' else ''}\n")
    environment = {"STREAMSVM_KAFKA_SASL_PLAIN_PASSWORD_FILE": "secrets/password"} if layer == "environment" else {}
    flags = ["kafka.sasl_plain_password_file=secrets/password"] if layer == "flag" else []
    settings = load(path, environment, flags)
    assert settings.kafka == {"bootstrap_servers": "a:1", "sasl_plain_password": "hunter2"}
    (tmp_path / "mounted").write_text("of the environment")
    mounted = {"STREAMSVM_KAFKA_SASL_PLAIN_PASSWORD_FILE": str(tmp_path / "mounted")}
    if layer == "file":
        assert load(path, mounted).kafka == {**settings.kafka, "sasl_plain_password": "of the environment"}


@pytest.mark.parametrize("content", [None, b"\xff"])
def test_a_secret_that_cannot_be_read_is_a_problem_like_others(tmp_path, content):
    if content:
        (tmp_path / "password").write_bytes(content)
    path = write(tmp_path, "[model]\nC = 0\n[kafka]\nsasl_plain_password_file = 'password'\n")
    found = problems(path)
    assert len(found) == 2
    assert any("kafka.sasl_plain_password_file = 'password' cannot be read" in problem for problem in found)


def test_secrets_are_shown_nowhere(tmp_path):
    (tmp_path / "password").write_text("hunter2")
    text = "[kafka]\nbootstrap_servers = 'a:1'\nsasl_plain_password_file = 'password'\nssl_password = 'hunter2'\n"
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


def test_options_of_the_kafka_client_are_checked(tmp_path):
    path = write(tmp_path, '[kafka]\nbootstrap_server = "x:1"\ngroup_id = "mine"\nvalue_deserializer = "x"\n')
    assert problems(path) == [
        "kafka.bootstrap_server is no option of kafka-python; did you mean 'bootstrap_servers'?",
        "kafka.group_id cannot be set: it is group.id",
        "kafka.value_deserializer is no option of kafka-python",
        "kafka.bootstrap_servers is missing: the address of a broker, such as 'localhost:9092'",
    ]


def test_schemas_that_cannot_be_used_are_a_problem_of_the_configuration(tmp_path):
    (problem,) = problems(write(tmp_path, "[log]\nformat = 'avro'\n"))
    assert problem.startswith("log.format = 'avro': ")
