"""`streamsvm explain`: the model of a file or of a trainer says why it answers as it does."""

import json

import numpy as np
import pytest

from streamsvm import LASVM
from streamsvm.connectors.commands.explain import text
from streamsvm.connectors.logs.embedded import LocalLog
from streamsvm.connectors.settings.loading import load
from streamsvm.connectors.trainer.trainer import run

ROWS = np.random.default_rng(0).normal(size=(200, 2)).round(3).tolist()


@pytest.fixture
def model():
    model = LASVM()
    for number, (a, b) in enumerate(ROWS):
        model.learn_one({"a": a, "b": b}, a > b, id=number)
    return model


def test_a_file_and_the_trainers_newest_checkpoint_say_what_the_model_says(tmp_path, call, model):
    model.save(tmp_path / "m.ssvm")
    (tmp_path / "app.toml").write_text("[daemon]\nfollow = false\n")
    with LocalLog(tmp_path / "log") as log:
        for number, (a, b) in enumerate(ROWS):
            log.produce("events", json.dumps({"id": number, "x": {"a": a, "b": b}, "y": a > b}).encode())
    run(load(tmp_path / "app.toml", {}))
    (tmp_path / "events").write_text('{"id": 7, "x": {"a": 1.0, "b": 0.9}}\n\n{"a": -1, "b": 0.5}\n')
    expected = (
        f"7: {text(model.explain_one({'a': 1.0, 'b': 0.9}), {})}\n{text(model.explain_one({'a': -1, 'b': 0.5}), {})}"
    )
    for source in ("m.ssvm", "app.toml", "state"):
        code, out, err = call("explain", tmp_path / source, tmp_path / "events")
        assert (code, err) == (0, [])
        assert out == expected.splitlines()
    assert len(call("explain", tmp_path / "m.ssvm", tmp_path / "events", "-n", 1)[1]) == 2 * 4


def test_raw_events_are_explained_by_their_numbers(tmp_path, call):
    (tmp_path / "app.toml").write_text("[daemon]\nfollow = false\n[features]\nraw = true\n")
    with LocalLog(tmp_path / "log") as log:
        for number, (a, _) in enumerate(ROWS):
            event = {"id": number, "x": {"colour": "red" if a > 0 else "blue", "a": a}, "y": a > 0}
            log.produce("events", json.dumps(event).encode())
    run(load(tmp_path / "app.toml", {}))
    (tmp_path / "events").write_text('{"id": 7, "x": {"colour": "red", "a": 1.0}}\n')
    code, out, _ = call("explain", tmp_path / "app.toml", tmp_path / "events")
    assert code == 0
    assert out[0].startswith("7: True rather than False")
    assert any("colour=red" in line for line in out)


def test_a_flat_record_is_read_as_the_trainer_reads_it(tmp_path, call):
    """Without the function of the user, the price would be missing, and the answer another one, without a word."""
    (tmp_path / "shop_convert.py").write_text(
        "def convert(x):\n    return x | {'price': x['price'].replace(',', '.')}\n"
    )
    lines = ["[daemon]", "follow = false", "[features]", "raw = true", 'id = "nr"', 'label = "dear"']
    lines += ['transform = "shop_convert:convert"', "[label]", 'positive = "yes"', 'negative = "no"']
    (tmp_path / "app.toml").write_text("\n".join(lines))
    with LocalLog(tmp_path / "log") as log:
        for number, (a, _) in enumerate(ROWS):
            event = {"nr": number, "price": f"{a}".replace(".", ","), "dear": "yes" if a > 0 else "no"}
            log.produce("events", json.dumps(event).encode())
    run(load(tmp_path / "app.toml", {}))
    (tmp_path / "events").write_text('{"nr": 7, "price": "1,5", "dear": ""}\n{"price": "-1,5"}\n')
    code, out, _ = call("explain", tmp_path / "app.toml", tmp_path / "events")
    said = [line for line in out if "rather than" in line]
    assert (code, [line.partition(",")[0] for line in said]) == (0, ["7: yes rather than no", "no rather than yes"])
    (tmp_path / "events").write_text('{"nr": 7}\n')
    code, _, (err,) = call("explain", tmp_path / "app.toml", tmp_path / "events")
    assert (code, "features.transform raised KeyError: 'price'" in err) == (1, True)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("{", "events, line 1: "),
        ("[1]", "events, line 1: not a JSON object"),
        ("\n", "events: there is no event; write each on a line"),
        ('{"x": {"a": "high"}}', "feature 'a' is 'high'"),
    ],
)
def test_what_is_no_event_is_refused(tmp_path, call, model, line, problem):
    model.save(tmp_path / "m.ssvm")
    (tmp_path / "events").write_text(line)
    code, _, err = call("explain", tmp_path / "m.ssvm", tmp_path / "events")
    assert code == 1
    assert any(problem in each for each in err)
