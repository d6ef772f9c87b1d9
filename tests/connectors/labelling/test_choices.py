"""Labelling with more than two classes: questions, answers, new classes, and what the trainer learns."""

import csv
import http.client
import io
import json
import os
import re
from types import SimpleNamespace
from urllib.parse import urlsplit

import numpy as np
import pytest
from asked import Trainer, of_questions, until
from fuse import killed_anywhere
from logged import append, change, read, read_json

from streamsvm.connectors.commands.cli import main
from streamsvm.connectors.labelling.answer import Given
from streamsvm.connectors.labelling.choices import KEYS, Choices
from streamsvm.connectors.labelling.history import History
from streamsvm.connectors.labelling.label_studio.interface import ClassScore, Interface
from streamsvm.connectors.labelling.oracles import truth_from_file
from streamsvm.connectors.labelling.service import LabellingService
from streamsvm.connectors.labelling.terminal import session
from streamsvm.connectors.labelling.web.page import LabellingPage
from streamsvm.connectors.records.labels import Place
from streamsvm.connectors.records.people.annotators import cohen, krippendorff
from streamsvm.connectors.report.charts import table
from streamsvm.connectors.report.page import write_report
from streamsvm.connectors.runtime.folders import FileError
from streamsvm.connectors.settings.labelling import LabellingSettings
from streamsvm.connectors.settings.model import ModelSettings
from streamsvm.connectors.settings.sections import DaemonSettings, LabelSettings
from streamsvm.connectors.trainer import trainer

CENTRES = {"cat": (0.0, 0.0), "dog": (4.0, 0.0), "bird": (0.0, 4.0)}
OPEN = LabelSettings(classes=("cat", "dog", "bird"), max_classes=4)


def configure(folder, **labelling):
    """A trainer that asks."""
    conf = of_questions(
        folder,
        model=ModelSettings(C=10.0, cache_mb=1.0),
        labelling=LabellingSettings(**{"stop": "never", "open": 3, "port": 0, **labelling}),
        daemon=DaemonSettings(batch=8, state_dir=folder / "state", checkpoint_records=20, follow=False),
    )
    return change(conf, label={"positive": None, "negative": None, "classes": tuple(CENTRES), "max_classes": 4})


def some_events(n):
    rng = np.random.default_rng(0)
    for i in range(n):
        label = list(CENTRES)[rng.integers(3)]
        a, b = (np.array(CENTRES[label]) + 0.5 * rng.normal(size=2)).round(6).tolist()
        yield label, {"id": f"e{i}", "x": {"a": a, "b": b}}


def truth(n):
    return {event["id"]: label for label, event in some_events(n)}


def answer_all(settings, right):
    with LabellingService(settings) as service:
        while not service.stats()["loaded"]:
            service.wait(1)
        while (shown := service.next("ann")) is not None:
            service.answer(shown.query_id, right[shown.id], "ann", at=1_700_000_000_000 + int(shown.id[1:]))


def labelled(settings, n=60, rounds=8):
    """What a trainer and a person who knows everything come to."""
    append(settings, [event for _, event in some_events(n)])
    for _ in range(rounds):
        state = trainer.run(settings)[0]
        answer_all(settings, truth(n))
    return trainer.run(settings)[0], state


def test_the_trainer_asks_and_learns_the_answers(tmp_path):
    settings = configure(tmp_path)
    state, _ = labelled(settings)
    counts = state.labelling.loop.counts
    assert counts.n_labels == state.model.n_seen > 15
    assert dict(counts.of_classes) == dict(
        zip(*np.unique([label["y"] for label in read_json(settings, "labels")], return_counts=True), strict=True)
    )
    right = truth(60)
    known = [state.model.predict_one(event["x"]) == right[event["id"]] for _, event in some_events(60)]
    assert np.mean(known) > 0.9
    questions = [item for item in read_json_values(settings, "questions") if "query_id" in item]
    assert all(item["guess"] in CENTRES and set(item["probabilities"]) == set(CENTRES) for item in questions)
    assert {item["reason"] for item in questions} > {"seed", "boundary"}
    status = [item["status"] for item in read_json_values(settings, "questions") if "status" in item][-1]
    assert [label for label, _ in status["classes"]] == list(CENTRES)
    assert sum(n for _, n in status["classes"]) == status["labels"] == counts.n_labels


def read_json_values(settings, topic):
    return [json.loads(record.value) for record in read(settings, topic) if record.value]


def test_a_question_is_about_the_smallest_lead(tmp_path):
    settings = configure(tmp_path, selection="all", explore=0.0, open=1)
    labelled(settings, rounds=6)
    questions = [item for item in read_json_values(settings, "questions") if item.get("reason") == "boundary"]
    first = questions[0]
    values = sorted(first["probabilities"].values())
    assert 0.0 <= first["margin"] < 1.0
    assert first["score"] == pytest.approx(values[-1])


def come_to(settings, state):
    """All but the times, which are those of the clock."""
    asked = {item["query_id"]: item["guess"] for item in read_json_values(settings, "questions") if "query_id" in item}
    return state.model.digest(), state.labelling.loop.counts, asked, state.classes.labels


@pytest.mark.long
def test_killed_while_it_asks_it_ends_the_same(tmp_path, monkeypatch):
    def prepared(name):
        settings = configure(tmp_path / name)
        append(settings, [event for _, event in some_events(24)])
        trainer.run(settings)
        answer_all(settings, truth(24))
        append(settings, [{**event, "id": f"later-{event['id']}"} for _, event in some_events(8)])
        return settings

    killed_anywhere(prepared, lambda settings, states: come_to(settings, states[0]), 3, monkeypatch)


# --- choices ----------------------------------------------------------------------------------------------------------


def test_an_annotator_may_add_a_class_while_there_is_room():
    choices = Choices(OPEN)
    assert choices.named("fish") == "fish"
    assert choices.named("7") == 7
    full = Choices(OPEN, {"classes": [["fish", 1]]})
    assert [*full.known.values()] == ["cat", "dog", "bird", "fish"]
    assert not full.may_add
    with pytest.raises(ValueError, match="no room for 'ant'"):
        full.named("ant")
    with pytest.raises(ValueError, match="printable"):
        choices.named(" ant")
    closed = Choices(LabelSettings(classes=("cat", "dog", 7)))
    assert closed.named("7") == 7
    assert choices.wanted() == "one of 'cat', 'dog', 'bird' or the name of a new class"
    assert Choices(LabelSettings(max_classes=4)).wanted() == "the name of a new class"
    with pytest.raises(ValueError, match="must be one of 'cat', 'dog', '7', got 'fish'"):
        closed.named("fish")


def test_a_digit_has_its_own_key_and_a_new_class_changes_no_key():
    digits = Choices(LabelSettings(classes=tuple(range(10))))
    assert digits.keys() == {str(digit): str(digit) for digit in range(10)}
    mixed = LabelSettings(classes=("none", 2, "many", 1), max_classes=9)
    keys = {"none": "3", "2": "2", "many": "4", "1": "1"}
    assert Choices(mixed).keys() == keys
    come = {"classes": [[3, 1], ["9", 1], ["fish", 1]]}
    assert Choices(mixed, come).keys() == {**keys, "3": "5", "9": "9", "fish": "6"}
    many = Choices(LabelSettings(classes=tuple(f"bird {number}" for number in range(30))))
    assert "".join(many.keys().values()) == KEYS
    assert list(many.keys().values())[-2:] == ["", ""]
    assert list(Choices(LabelSettings()).keys().values()) == ["1", "2"]


def test_a_changed_class_changes_no_key_of_another():
    settings = LabelSettings(classes=("cat", "dog", "bird"), max_classes=6)
    stats = {"classes": [["cat", 1], ["dog", 1], ["bird", 1], ["dgo", 1], ["7", 1]], "changes": []}
    keys = Choices(settings, stats).keys()
    for old, new, op in (("dgo", "dog", "merge"), ("cat", "tiger", "rename"), ("bird", None, "remove")):
        change = Choices(settings, stats).change(old, new)
        assert change.op == op
        stats["changes"].append(list(change))
    assert Choices(settings, stats).keys() == {"tiger": keys["cat"], "dog": keys["dog"], "7": keys["7"]}
    stats["classes"] += [["tiger", 0], ["fish", 0]]
    choices = Choices(settings, stats)
    assert choices.keys()["tiger"] == keys["cat"]
    assert choices.keys()["fish"] not in keys.values()
    assert choices.named("dgo") == choices.named("DOG ") == "dog"  # one class
    assert choices.named("cat") == "tiger"
    assert choices.named("bird") == "bird"  # it comes again
    for old, new in (("fish", "cat"), ("fish", "Tiger"), ("no", "x"), ("dog", "dog"), ("dog", "skip")):
        with pytest.raises(ValueError, match=r"name|class"):
            choices.change(old, new)
    assert choices.change("tiger", "cat").op == "rename"  # back
    fixed = Choices(LabelSettings(classes=("cat", "dog", "bird")))
    with pytest.raises(ValueError, match="write the new name there"):
        fixed.change("cat", "tiger")


def test_the_service_tells_every_partition_and_knows_it_after_a_restart(tmp_path):
    settings = configure(tmp_path)
    teacher = Trainer(settings)
    teacher.status(classes=[["cat", 1], ["dgo", 2]])
    with LabellingService(settings) as service:
        until(lambda: service.stats()["loaded"])
        merge = Choices(settings.label, service.stats()).change("dgo", "dog")
        service.change_class(merge, "page:Ann#1")
        assert service.meaning("dgo") == "dog"
    (record,) = read_json(settings, "labels")
    assert {name: record[name] for name in ("op", "from", "to", "source")} == {
        "op": "merge", "from": "dgo", "to": "dog", "source": "page:Ann#1",
    }  # fmt: skip
    teacher.status(changes=[["merge", "dgo", "dog", record["rev"], "page:Ann#1"]])
    with LabellingService(settings) as service:
        until(lambda: service.stats()["loaded"])
        assert service.meaning("dgo") == "dog"
        assert len(service.class_changes()) == 1
    teacher.close()
    keyed = change(settings, daemon={"per": "key"})
    with LabellingService(keyed) as service, pytest.raises(ValueError, match="one model for each partition"):
        service.change_class(merge, "page:Ann#1")


def test_the_keys_of_classes_say_nothing_else():
    assert not set(KEYS) & set("siuhzqn")
    assert len(set(KEYS)) == len(KEYS)


def test_agreement_of_several_classes():
    shared = [{"a": "x", "b": "x"}, {"a": "y", "b": "y"}, {"a": "z", "b": "x"}, {"a": "x", "b": "x"}]
    # Observed: 3/4; by chance: x 2/4 * 3/4, y 1/4 * 1/4.
    assert cohen(shared) == pytest.approx((3 / 4 - 7 / 16) / (1 - 7 / 16))
    # 8 labels, of which 5 are x, 2 y and 1 z: 2 unequal ordered pairs in one event, 64 - 25 - 4 - 1 in all.
    assert krippendorff([list(labels.values()) for labels in shared]) == pytest.approx(1 - (2 / 8) * 8 * 7 / 34)


def test_the_history_keeps_every_kind_of_label(tmp_path):
    history = History(tmp_path / "answers.sqlite")
    for rev, y in enumerate([True, False, "cat", "1.5", 7, 0, None]):
        op = "skip" if y is None else "set"
        history.add(f"q{rev}", Given(op, y, "ann", rev, Place(0, "e")), None)
    found = [step.given.y for step in history.page(None, None, 9)][::-1]
    history.close()
    assert found == [True, False, "cat", "1.5", 7, 0, None]
    assert [type(y) for y in found[4:6]] == [int, int]


# --- the terminal and the page ----------------------------------------------------------------------------------------


def asked(tmp_path, n=3):
    settings = change(configure(tmp_path), daemon={"follow": True})
    teacher = Trainer(settings)
    for number in range(n):
        teacher.ask(number, guess="dog", probabilities={"cat": 0.25, "dog": 0.75, "bird": 0.0}, score=0.75)
    return settings, teacher


def test_keys_in_the_terminal(tmp_path):
    settings, teacher = asked(tmp_path)
    teacher.status(classes=[["cat", 0], ["dog", 0], ["bird", 0], ["fish", 2]], labels=2)
    target = io.StringIO()
    with LabellingService(settings) as service:
        while not service.stats()["loaded"]:
            service.wait(1)
        reader, writer = os.pipe()
        os.write(writer, b"3\n4\n9\nu\n2\n1\nq\n")
        os.close(writer)
        with open(reader, encoding="utf-8") as source:
            n_labels = session.run(service, settings, lambda: False, "terminal:ann", source, target)
    teacher.close()
    assert n_labels == 3
    said = target.getvalue()
    assert "[1] cat  [2] dog  [3] bird  [4] fish  [s]" in said
    assert "the model: 75% dog, margin" in said
    assert "2 labels: 2 fish" in said
    assert "'9' is not a key" in said
    assert teacher_labels(settings) == {"e0": "bird", "e1": "dog", "e2": "cat"}


def teacher_labels(settings):
    held = {}
    for answer in read_json(settings, "labels"):
        held.pop(answer["id"], None)
        if answer["op"] == "set":
            held[answer["id"]] = answer["y"]
    return held


def test_the_page_s_server_takes_a_new_class(tmp_path):
    settings, teacher = asked(tmp_path)
    with LabellingService(settings) as service, LabellingPage(service, settings) as page:
        address, token = urlsplit(page.url), page.url.partition("#token=")[2]

        def ask(method, path, body=None):
            headers = {"Authorization": f"Bearer {token}", "X-Tab": "0123abcd", "Content-Type": "application/json"}
            client = http.client.HTTPConnection(address.hostname, address.port)
            client.request(method, path, None if body is None else json.dumps(body), headers)
            response = client.getresponse()
            answer = response.status, json.loads(response.read())
            client.close()
            return answer

        while not service.stats()["loaded"]:
            service.wait(1)
        shown = ask("GET", "/api/next")[1]
        assert (shown["labels"], shown["is_multiclass"], shown["may_add"]) == (["cat", "dog", "bird"], True, True)
        assert shown["question"]["guess"] == "dog"
        assert ask("POST", "/api/answer", {"query_id": "q0", "label": "fish"}) == (
            200,
            {"outcome": "first", "label": "fish"},
        )
        assert ask("POST", "/api/answer", {"query_id": "q1", "label": "bird"}) == (
            200,
            {"outcome": "first", "label": "bird"},
        )
        status, refused = ask("POST", "/api/answer", {"query_id": "q2", "label": ""})
        assert (status, "printable" in refused["error"]) == (400, True)
        status, refused = ask("POST", "/api/answer", {"query_id": "q2"})
        assert (status, "or the name of a new class, got None" in refused["error"]) == (400, True)
        history = ask("GET", "/api/history")[1]["answers"]
        assert [answer["label"] for answer in history] == ["bird", "fish"]
        teacher.status(classes=[["cat", 0], ["dog", 0], ["bird", 1], ["fish", 1]])
        while len(ask("GET", "/api/about")[1]["labels"]) < 4:
            service.wait(1)
        assert not ask("GET", "/api/about")[1]["may_add"]
        assert ask("POST", "/api/answer", {"query_id": "q2", "label": "ant"})[0] == 400
    teacher.close()
    assert teacher_labels(settings) == {"e0": "fish", "e1": "bird"}


# --- files, Label Studio, the report ----------------------------------------------------------------------------------

CHOICES = """<View><Image name="image" value="$image"/><Choices name="kind" toName="image">
<Choice value="cat"/><Choice value="dog"/><Choice value="A bird" alias="bird"/><Choice value="7"/></Choices></View>"""


def test_choices_of_label_studio_are_classes():
    interface = Interface.read(CHOICES, OPEN)
    assert interface.meanings == {"cat": "cat", "dog": "dog", "bird": "bird", "7": 7}

    def chosen(*choices):
        return [{"from_name": "kind", "value": {"choices": list(choices)}}]

    assert interface.label_of(chosen("7")) == 7
    assert interface.label_of(chosen("cat", "dog")) is None
    said = interface.prediction(ClassScore(7, 0.6), "v1")
    assert (said["result"][0]["value"]["choices"], said["result"][0]["to_name"], said["score"]) == (["7"], "image", 0.6)
    assert interface.prediction(ClassScore("fish", 0.6), "v1")["result"] == []
    assert interface.prediction(ClassScore(None, None), "v1")["result"] == []
    closed = LabelSettings(classes=("cat", "dog", "bird", "fish"))
    assert Interface.read(CHOICES, closed) is None
    assert Interface.read(CHOICES, LabelSettings(classes=("cat", "dog", "bird"))).meanings.keys() == {
        "cat",
        "dog",
        "bird",
    }


def test_an_oracle_knows_classes_from_a_file(tmp_path):
    file = tmp_path / "truth.csv"
    file.write_text("id,y\ne1,cat\ne2,7\n")
    known = truth_from_file(file, OPEN)
    assert [known(SimpleNamespace(id=id_)) for id_ in ("e1", "e2", "e3")] == ["cat", 7, None]
    with pytest.raises(FileError, match="a label 'y' of 'cat', 'dog', 8"):
        truth_from_file(file, LabelSettings(classes=("cat", "dog", 8)))


def test_labels_of_classes_come_from_a_file_and_go_to_one(tmp_path):
    config = tmp_path / "app.toml"
    config.write_text(
        '[log]\nlabels = "labels"\n[label]\nclasses = ["cat", "dog", "bird", 7]\n[daemon]\nfollow = false\n'
    )
    events = tmp_path / "events.csv"
    events.write_text("id,a,kind\n" + "".join(f"e{i},{i % 3},{['cat', 'dog', '7'][i % 3]}\n" for i in range(30)))
    assert main(["produce", str(events), "--config", str(config), "--id", "id", "--label", "kind"]) == 0
    given = tmp_path / "labels.csv"
    given.write_text("id,y\ne0,bird\ne1,7\n")
    assert main(["produce", str(given), "--config", str(config), "--labels"]) == 0
    assert main(["run", str(config)]) == 0
    out = tmp_path / "out.csv"
    assert main(["labels", str(config), "--out", str(out)]) == 0
    rows = list(csv.DictReader(out.read_text().splitlines()))
    assert [(row["id"], row["y"]) for row in rows] == [("e0", "bird"), ("e1", "7")]
    assert {row["predicted"] for row in rows} <= {"cat", "dog", "bird", "7"}


def test_the_report_shows_classes(tmp_path):
    pytest.importorskip("matplotlib")
    settings = configure(tmp_path)
    state, _ = labelled(settings, rounds=3)
    text = write_report(settings.daemon.state_dir, tmp_path / "report.html", settings)[0].read_text()
    assert "macro F1" in text
    assert "<h3>Confusion</h3>" in text
    assert "see “Classes”" in text, "an event is predicted when it comes, so its class says nothing about the model"
    (n_random,) = re.findall(r"Over the last (\d+) random question", text)
    assert re.search(rf"\d+ of the last {n_random} random question", text)
    alone = write_report(settings.daemon.state_dir, tmp_path / "alone.html")[0].read_text()
    assert "<h3>Confusion</h3>" not in alone
    n = dict(state.labelling.loop.counts.of_classes)["cat"]
    assert f"{n} cat" in text
    assert "g-mean" not in text
    assert "macro F1" in table({"events-0": state})
