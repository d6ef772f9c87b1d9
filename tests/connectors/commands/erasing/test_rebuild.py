"""A rebuilt state is bit for bit that of a trainer that never saw the erased records, and receipts show it."""

import json
import shutil
from types import SimpleNamespace

import numpy as np
import pytest
from logged import append, read, some_events

from streamsvm.connectors.logs import embedded
from streamsvm.connectors.logs.embedded import LocalLog
from streamsvm.connectors.settings.loading import load
from streamsvm.connectors.trainer import swapping, trainer
from streamsvm.connectors.trainer.state.digests import digests

pytestmark = pytest.mark.usefixtures("no_waiting_for_the_disk", "clock")
ERASURES = "log.erasures=erasures"
MODELS = {  # flags of the configuration
    "lasvm": ["model.C=2"],
    "lasvm-i": ["model.algorithm=lasvm-i"],
    "auto": ["model.algorithm=auto"],
    "budget": ["model.budget=30"],
    "window": ["model.window=80"],
    "classes": ['label.classes=["ant", "bee", "wasp"]'],
    "keys": ["daemon.per=key", "log.model=models"],
    "raw": ["features.raw=true"],
    "labels": ["log.labels=labels"],
    "decide": ["decide.error=0.1"],
    "topic": ["state.store=topic", "log.state=state"],
    "estimates": ["estimates.loo=true", "estimates.every=50"],
}


@pytest.fixture
def clock(monkeypatch):
    """`fill` says what time it is."""
    time = SimpleNamespace(time_ns=lambda: 10**18, monotonic=embedded.time.monotonic, sleep=lambda _: None)
    monkeypatch.setattr(embedded, "time", time)


def records(name, n, seed=0):
    """Events, and their labels if these come apart, as (topic, key, value); events of 20 users."""
    rng = np.random.default_rng(seed)
    for i, value in enumerate(some_events(n, seed)):
        event = {**json.loads(value), "user": f"u{i % 20}"}
        key = b"k%d" % (i % 3 if i % 20 != 3 else 9)
        if name == "classes":
            event["y"] = ["ant", "bee", "wasp"][(event["x"]["a"] > 0) + (event["x"]["b"] > 0)]
        if name == "raw":
            event["x"] |= {"c": f"{rng.choice(['red', 'blue', 'green'])}", "d": None if i % 7 else f"{i}.5"}
        label = {"id": event["id"], "y": event.pop("y")} if name == "labels" else None
        yield "events", key, event
        if label and i % 4:
            yield "labels", key, label


def fill(folder, found, gone=lambda value: False, how="tombstones", first=0):
    """Write records to a log, a second apart; those that are gone are tombstones, or left out."""
    ids = {value["id"] for _, _, value in found if gone(value)}
    with LocalLog(folder) as log:
        for i, (topic, key, value) in enumerate(found, first):
            is_gone = value["id"] in ids
            embedded.time.time_ns = lambda i=i: (10**9 + i) * 10**9
            if not is_gone or how == "tombstones":
                log.produce(topic, None if is_gone else json.dumps(value).encode(), key=key)


def run(config, *flags):
    return trainer.run(load(config, {}, list(flags)))


def sets(flags):
    return [part for flag in flags for part in ("--set", flag)]


@pytest.mark.parametrize(
    "name",
    [
        "lasvm",
        "labels",
        *(pytest.param(each, marks=pytest.mark.long) for each in list(MODELS) if each not in ("lasvm", "labels")),
    ],
)
def test_a_rebuilt_state_never_saw_what_was_erased(tmp_path, config, call, name):
    flags = [ERASURES, *MODELS[name]]
    found = list(records(name, 300))
    fill(tmp_path / "log", found[:-100])
    run(config, *flags)
    assert call("erase", config, "--subject", "u3", "--by", "user", *sets(flags))[0] == 0
    fill(tmp_path / "log", found[-100:], first=len(found) - 100)
    call("erase", config, "--subject", "u3", "--by", "user", *sets(flags))
    live = digests(run(config, *flags)[0])
    receipt = tmp_path / "receipt.json"
    code, out, _ = call("rebuild", config, "--receipt", receipt, *sets(flags))
    assert (code, receipt.exists()) == (0, False)
    assert "swap when they run" in out[-1]
    swapped = run(config, *flags)[0]
    code, out, _ = call("rebuild", config, "--receipt", receipt, *sets(flags))
    assert code == 0, out
    after = json.loads(receipt.read_text())["partitions"]["0"]["after"]
    assert digests(swapped)["models"] == after["models"]
    assert live["models"] != after["models"]
    assert not list(tmp_path.glob("state-rebuilt*"))

    def gone(value):
        return value.get("user") == "u3"

    for how in ("tombstones", "nothing"):
        fill(tmp_path / how, found, gone, how)
        never = run(config, *flags, f"log.dir={tmp_path / how}", f"daemon.state_dir={tmp_path / f'{how}-state'}")[0]
        expected = digests(never)
        if how == "tombstones" and name != "labels":  # offsets, too; labels came after a stage
            assert after == expected
        assert after["models"] == expected["models"]
        assert after["running error"] == expected["running error"]
    code, out, _ = call("verify", receipt, config, *sets(flags))
    assert (code, "holds" in out[-1]) == (0, True), out


@pytest.fixture
def rebuilt(tmp_path, config, call):
    """A receipt, and the flags of its configuration."""
    fill(tmp_path / "log", list(records("lasvm", 200)))
    run(config, ERASURES)
    call("erase", config, "--subject", "u3", "--by", "user", "--set", ERASURES)
    run(config, ERASURES)
    call("rebuild", config, "--set", ERASURES, "--receipt", tmp_path / "receipt.json")
    return tmp_path / "receipt.json"


def finished(config, call, receipt, *more):
    run(config, ERASURES)
    return call("rebuild", config, "--set", ERASURES, "--receipt", receipt, *more)


def test_the_trainer_swaps_once_whenever_it_is_killed(tmp_path, config, call, rebuilt, monkeypatch, caplog):
    fill(tmp_path / "log", list(records("lasvm", 40, seed=1)), first=200)
    began, rerun = [], swapping.Rerun.run

    def begin(*arguments):
        began.append(True)
        return rerun(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(swapping.Rerun, "run", begin)
        trainer.run(load(config, {}, [ERASURES]), stop=lambda: bool(began))
    assert began
    assert "keeps its state" not in caplog.text

    def killed(*_, **__):
        raise KeyboardInterrupt

    for owner, name in ((swapping.Rerun, "run"), (swapping, "write_private"), (trainer.CheckpointStore, "save")):
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, killed)
            with pytest.raises(KeyboardInterrupt):
                run(config, ERASURES)
    state = run(config, ERASURES)[0]
    assert state.offset == 240
    note = swapping.read_note(tmp_path / "state-rebuilt-1", 0)
    again = run(config, ERASURES)[0]
    assert swapping.read_note(tmp_path / "state-rebuilt-1", 0) == note
    assert digests(again) == digests(state)
    assert finished(config, call, rebuilt)[0] == 0
    sources = [json.loads(record.value)["src"] for record in read(tmp_path / "log", "predictions")]
    assert sorted(set(sources), key=lambda src: int(src.split("-")[-1])) == [f"events-0-{at}" for at in range(240)]


def test_scorers_take_the_rebuilt_model(tmp_path, config, call):
    flags = [ERASURES, "log.model=models"]
    fill(tmp_path / "log", list(records("lasvm", 200)))
    before = run(config, *flags)[0]
    call("erase", config, "--subject", "u3", "--by", "user", *sets(flags))
    forgot = run(config, *flags)[0]
    call("rebuild", config, *sets(flags))
    after = run(config, *flags)[0]
    assert before.version < forgot.version < after.version
    manifests = [json.loads(r.value) for r in read(tmp_path / "log", "models") if r.key == b"p0/manifest"]
    assert manifests[-1]["ver"] == after.version


def test_challengers_stay_as_they_are(tmp_path, config, call):
    config.write_text(config.read_text() + '[[challenger]]\nname = "other"\n[challenger.model]\nC = 1.0\n')
    fill(tmp_path / "log", list(records("lasvm", 200)))
    run(config, ERASURES)
    call("erase", config, "--subject", "u3", "--by", "user", "--set", ERASURES)
    before = run(config, ERASURES)[0].challengers.all[0].models.digest()
    call("rebuild", config, "--set", ERASURES)
    assert run(config, ERASURES)[0].challengers.all[0].models.digest() == before
    assert finished(config, call, tmp_path / "receipt.json")[0] == 0


@pytest.mark.long
def test_a_model_that_was_promoted_is_rebuilt_with_its_challengers(tmp_path, config, call):
    """Also one that was added later than the others."""
    section = '[[challenger]]\nname = "{}"\n[challenger.model]\nC = {}\n'
    config.write_text(config.read_text() + section.format("first", 1.0))
    flags = [ERASURES, "log.control=control"]
    found = list(records("lasvm", 300))
    fill(tmp_path / "log", found[:100])
    run(config, *flags)
    config.write_text(config.read_text() + section.format("second", 2.0))
    fill(tmp_path / "log", found[100:200], first=100)
    run(config, *flags)
    call("erase", config, "--subject", "u3", "--by", "user", *sets(flags))
    call("promote", config, "second", *sets(flags))
    run(config, *flags)
    fill(tmp_path / "log", found[200:], first=200)
    call("erase", config, "--subject", "u3", "--by", "user", *sets(flags))
    run(config, *flags)
    call("rebuild", config, *sets(flags))
    swapped = run(config, *flags)[0]
    receipt = tmp_path / "receipt.json"
    code, out, _ = call("rebuild", config, "--receipt", receipt, *sets(flags))
    assert code == 0, out
    after = json.loads(receipt.read_text())["partitions"]["0"]
    assert after["served"] == [["model", 0], ["second", 200]]
    fill(tmp_path / "never", found, lambda value: value["user"] == "u3")
    for topic in ("control", "control-served"):
        shutil.copytree(tmp_path / "log" / topic, tmp_path / "never" / topic)
    never = run(config, *flags, f"log.dir={tmp_path / 'never'}", f"daemon.state_dir={tmp_path / 'never-state'}")[0]
    assert after["after"] == digests(swapped) == digests(never)
    others = ({each.name: each for each in state.challengers.all} for state in (swapped, never))
    for rebuilt, expected in zip(*(map(found.get, ("model", "first")) for found in others), strict=True):
        assert rebuilt.models.digest() == expected.models.digest()
        assert rebuilt.comparison.to_json() == expected.comparison.to_json()
        assert rebuilt.settings.slowdown == 20.0
    assert call("verify", receipt, config, *sets(flags))[0] == 0
    shutil.rmtree(tmp_path / "log" / "control-served")
    code, out, _ = call("verify", receipt, config, *sets(flags))
    assert code
    assert "here 'model' serves from offset 0, and in the receipt 'model' serves" in " ".join(out)


def test_a_state_of_other_settings_is_not_rebuilt(config, call, rebuilt):
    code, _, err = call("rebuild", config, *sets([ERASURES, "model.C=3"]), "--receipt", rebuilt)
    assert code
    assert "the checkpoint was written with model.C = 10.0, the configuration says 3.0" in " ".join(err)


def test_a_request_after_the_swap_is_followed_after_it(tmp_path, config, call, rebuilt):
    call("erase", config, "--subject", "u5", "--by", "user", "--set", ERASURES)
    state = run(config, ERASURES)[0]
    assert not {i for i in range(200) if i % 20 in (3, 5)} & set(state.model.support_ids)
    assert state.erased.offset == 3


NO_PARTITIONS = '{"format": 1, "salt": "ff", "settings": {}, "machine": {}, "partitions": %s}'


@pytest.mark.parametrize(
    "text",
    [
        *("{", "[]", "{}", '{"format": 2}', '{"format": 1}'),
        NO_PARTITIONS % '{"0": {"after": {}}}',
        NO_PARTITIONS % "[]",
        (NO_PARTITIONS % "{}").replace("ff", "salt"),
    ],
)
def test_a_file_that_is_no_receipt_is_refused(tmp_path, config, call, text):
    (tmp_path / "receipt.json").write_text(text)
    code, out, err = call("verify", tmp_path / "receipt.json", config)
    assert (code, out) == (1, [])
    assert " receipt of " in err[0]


@pytest.mark.parametrize("signature", ["", "é", "\\ud800", 7])
def test_a_signature_of_any_kind_is_compared(tmp_path, config, call, signature):
    (tmp_path / "receipt.json").write_text(f'{NO_PARTITIONS[:-1] % "{}"}, "hmac": "{signature}"' + "}")
    (tmp_path / "secret").write_text("a secret of some length")
    code, _, err = call("verify", tmp_path / "receipt.json", config, "--key", tmp_path / "secret")
    assert code == 1
    assert "the signature is missing or wrong" in err[0]


def test_a_state_that_is_not_there_is_not_taken(tmp_path, config, call, rebuilt, caplog):
    shutil.rmtree(tmp_path / "state-rebuilt-1")
    before = run(config, ERASURES)[0]
    assert "does not have a rebuilt one" in caplog.text
    assert not {i for i in range(200) if i % 20 == 3} & set(before.model.support_ids)
    call("rebuild", config, "--set", ERASURES, "--receipt", rebuilt)  # another try
    code, out, _ = finished(config, call, rebuilt)
    assert code == 0
    assert "wrote the receipt" in out[-1]
    assert call("rebuild", config, "--set", ERASURES, "--receipt", rebuilt)[1] == [
        "nothing was erased since the last rebuild"
    ]
    assert not list(tmp_path.glob("state-rebuilt*"))


def test_a_state_that_stopped_elsewhere_is_not_taken(config, rebuilt, monkeypatch, caplog):
    monkeypatch.setattr(swapping.Rerun, "run", lambda *_: None)
    state = run(config, ERASURES)[0]
    assert "did not come to its place, offset 200 of the events and 0 of the labels" in caplog.text
    assert digests(run(config, ERASURES)[0]) == digests(state)


WHY = {  # what is changed, and what is said about it
    "setting": "the receipt was made with model.C = 10.0, the configuration says 3.0",
    "log": "records of events-0 from offset 0 to 200 differ",
    "shorter": "events-0 ends at offset 200, and the receipt's at 300",
    "less erased": "records of events-0 from offset 0 to 200 differ",
    "digest": "partition 0, models: the digest of this replay is",
    "machine": "the receipt was made with processor z80, and this is",
    "signature": "the signature is missing or wrong",
    "nothing": "holds: without its 10 erased records",
    "records gone": "holds: without its 10 erased records",
}


@pytest.mark.long
def test_a_receipt_says_why_it_does_not_hold(tmp_path, config, call, rebuilt):
    secret = tmp_path / "secret"
    secret.write_text("a secret of some length")
    assert finished(config, call, rebuilt, "--key", secret)[0] == 0
    for gone in (False, True):
        found = list(records("lasvm", 200))
        found[100][2]["x"]["a"] += not gone
        fill(tmp_path / f"other-{gone}", found, lambda value, gone=gone: gone and value["user"] == "u3")
    original = rebuilt.read_text()
    for change, words in WHY.items():
        receipt = json.loads(original)
        part = receipt["partitions"]["0"]
        flags = ["--key", secret] if change in ("signature", "nothing", "records gone") else []
        if change == "setting":
            flags = ["--set", "model.C=3"]
        if change in ("log", "records gone"):
            flags += ["--set", f"log.dir={tmp_path}/other-{change != 'log'}"]
        if change == "less erased":
            part["erased"].pop()
        if change == "shorter":
            part["place"][0] = 300
        if change in ("digest", "machine", "signature"):
            part["after"]["models"] = "0" * 64
            receipt["machine"]["processor"] = "z80"
        rebuilt.write_text(json.dumps(receipt))
        code, out, err = call("verify", rebuilt, config, *flags)
        assert words in " ".join([*out, *err])
        assert bool(code) == (change not in ("nothing", "records gone"))


def test_every_partition_has_its_own_rebuilt_state(tmp_path, config, call):
    with LocalLog(tmp_path / "log") as log:
        log.create("events", 2)
        for _, _, value in records("lasvm", 200):
            log.produce("events", json.dumps(value).encode(), partition=value["id"] % 2)
    before = {number: digests(state) for number, state in run(config, ERASURES).items()}
    call("erase", config, "--subject", "u3", "--by", "user", "--set", ERASURES)  # of partition 1 alone
    run(config, ERASURES)
    call("rebuild", config, "--set", ERASURES)
    after = run(config, ERASURES)
    assert digests(after[0]) == before[0]
    assert digests(after[1])["models"] != before[1]["models"]
    assert finished(config, call, tmp_path / "receipt.json")[0] == 0
    code, out, _ = call("verify", tmp_path / "receipt.json", config, "--set", ERASURES)
    assert (code, "without its 10 erased records" in out[-1]) == (0, True)
    call("erase", config, "--subject", "u5", "--by", "user", "--set", ERASURES)
    assert "swap when they run" in call("rebuild", config, "--set", ERASURES)[1][-1]


@pytest.mark.parametrize(
    ("flag", "words"),
    [
        ("log.questions=questions", "questions depend on when annotators answered"),
        ("daemon.start=latest", "not known where the trainer began"),
        ("log.erasures=", "there is no topic of requests"),
    ],
)
def test_what_cannot_be_rebuilt_is_refused(config, call, flag, words):
    code, _, err = call("rebuild", config, *sets([ERASURES, "log.labels=labels", flag]))
    assert code
    assert words in " ".join(err)


def test_a_log_without_its_beginning_is_refused(tmp_path, config, call):
    settings = ["log.segment_mb=0.001", ERASURES]
    with LocalLog(tmp_path / "log", 1000) as log:
        for value in some_events(100):
            log.produce("events", value)
    append(tmp_path / "log", [{"op": "erase", "events": [], "labels": [], "examples": [], "models": []}], "erasures")
    embedded.trim(tmp_path / "log" / "events" / "0", 50)
    code, _, err = call("rebuild", config, *sets(settings))
    assert code
    assert "the records before it are gone" in " ".join(err)


def test_a_state_on_another_machine_is_not_rebuilt_here(tmp_path, config, call):
    flags = [ERASURES, *MODELS["topic"]]
    fill(tmp_path / "log", list(records("lasvm", 40)))
    run(config, *flags)
    call("erase", config, "--subject", "u3", "--by", "user", *sets(flags))
    shutil.rmtree(tmp_path / "state")
    code, _, err = call("rebuild", config, *sets(flags))
    assert code
    assert "rebuild on the machine of the trainer" in " ".join(err)
