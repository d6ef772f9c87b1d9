"""A receipt names every setting that a state depends on."""

from dataclasses import fields

from logged import write_config

from streamsvm.connectors.commands.erasing.receipts import settings_of
from streamsvm.connectors.settings.loading import load
from streamsvm.connectors.settings.sections import SECTIONS

OTHER_SECTIONS = {"comparison", "group", "http", "labelling", "merger", "schema", "scorer", "state"}
OTHER_SETTINGS = {  # of [daemon]: when, where and how safely work is done; a rerun sets its own `start` and `begin`
    "begin",
    "checkpoint_records",
    "checkpoint_seconds",
    "exactly_once",
    "follow",
    "keep",
    "log_format",
    "max_models",
    "on_data_loss",
    "publish_json",
    "publish_seconds",
    "shutdown_seconds",
    "start",
    "state_dir",
    "watchdog_seconds",
}


def test_it_has_what_a_checkpoint_depends_on(tmp_path):
    settings = load(write_config(tmp_path), {})
    of_classes, no_setting, of_questions = "label.several", "model.device", "labelling.audit"  # questions are refused
    missing = settings.fingerprint().keys() - settings_of(settings).keys()
    assert missing == {of_classes, no_setting, of_questions}


def test_each_setting_is_named_or_leaves_the_state_alone(tmp_path):
    named = settings_of(load(write_config(tmp_path), {}))
    sections = {name.split(".")[0] for name in named}
    assert SECTIONS.keys() - sections == OTHER_SECTIONS, "does a state depend on it? Then receipts.py, otherwise here"
    left = {key.name for key in fields(SECTIONS["daemon"]) if f"daemon.{key.name}" not in named}
    assert left == OTHER_SETTINGS, "does a state depend on it? Then add it to receipts.py, otherwise here"
