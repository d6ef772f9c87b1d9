"""`streamsvm label TABLE`: a whole labelling job of a file of texts, from one command."""

import numpy as np
import pytest
from logged import read_json

from streamsvm.connectors.commands import label_table, label_words
from streamsvm.connectors.commands.arguments import processes
from streamsvm.connectors.commands.arguments.options import Parser
from streamsvm.connectors.commands.label import answer_questions, oracle
from streamsvm.connectors.runtime.folders import FileError
from streamsvm.connectors.settings.loading import load
from streamsvm.connectors.settings.sections import ConfigError

WORDS = ("meeting", "lunch", "report", "plan", "team", "invoice", "travel", "notes", "agenda", "review")


pytestmark = pytest.mark.usefixtures("haste")


@pytest.fixture
def messages(tmp_path):
    rng = np.random.default_rng(0)
    path = tmp_path / "messages.csv"
    texts = [" ".join(rng.choice(WORDS, 6)) + (" prize" if i % 20 == 7 else "") for i in range(400)]
    path.write_text("\n".join(["body,sender", *(f"{text},ann" for text in texts)]) + "\n")
    return path


def arguments(*words):
    parser = Parser()
    processes.label(parser)
    return parser.parse_args(list(map(str, words)))


def test_texts_are_shown_and_learned(messages, tmp_path):
    config = label_table.prepare(arguments(messages, "--text", "body"))
    assert config == tmp_path / "messages-labels" / "app.toml"
    events = read_json(tmp_path / "messages-labels" / "log", "records")
    assert (len(events), events[7]["id"], events[7]["text"][-5:]) == (400, "messages:9", "prize")
    assert events[7]["x"] == {"body": events[7]["text"], "sender": "ann"}


def test_a_column_of_ids_names_the_events_and_is_no_feature(tmp_path, capsys):
    """Answers from a file, and the labels that come out, belong to the ids of the table."""
    table = tmp_path / "mails.csv"
    table.write_text("valid,id,body\n1,m7,hello\n1,m8,hi\n")
    folder = tmp_path / "mails-labels" / "log"
    for added in "", "0,m7,again\n":  # The job goes on as it has begun, whatever comes later.
        table.write_text(table.read_text() + added)
        label_table.prepare(arguments(table, "--text", "body"))
        assert "the ids are those of the column 'id'" in capsys.readouterr().out
    assert [event["id"] for event in read_json(folder, "records")] == ["m7", "m8", "m7"]
    assert read_json(folder, "records")[0]["x"] == {"valid": "1", "body": "hello"}


def test_ids_that_repeat_are_a_feature_for_ever(tmp_path):
    table, folder = tmp_path / "mails.csv", tmp_path / "mails-labels" / "log"
    table.write_text("id,body\n7,hello\n7,hi\n")
    for added in "", "8,again\n":
        table.write_text(table.read_text() + added)
        label_table.prepare(arguments(table, "--text", "body"))
    assert [event["id"] for event in read_json(folder, "records")] == ["mails:2", "mails:3", "mails:4"]


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ((), "Choose positive if this is what you look for, or negative if it is not."),
        (("label.positive=spam", "label.negative=ham"), "Choose spam, or ham."),
        (('label.classes=["a", "b", "c"]',), "Choose the class that fits best."),
        (("labelling.instructions=Is it spam?",), "Is it spam?"),
    ],
)
def test_the_instructions_say_what_to_choose(messages, flags, words):
    config = label_table.prepare(
        arguments(messages, "--text", "body", *(word for flag in flags for word in ("--set", flag)))
    )
    assert load(config, {}).labelling.instructions.removesuffix(" If you cannot tell, choose Skip.") == words


@pytest.mark.parametrize(("sender", "scaling"), [("ann", "none"), ("4.5", "standard"), ("1e3", "standard")])
def test_words_are_not_scaled_where_there_are_no_numbers(tmp_path, sender, scaling):
    """Of 59 positives among 3000 made texts, 150 questions found 7 with scaling, and 32 without."""
    (tmp_path / "mails.csv").write_text(f"body,sender,no\n7,{sender},7\nhello,ann,8\n".replace("7,", "see 7,", 1))
    config = label_table.prepare(arguments(tmp_path / "mails.csv", "--text", "body", "--id", "no"))
    assert load(config, {}).model.scaling == scaling
    given = ("--text", "body", "--id", "no", "--set", "model.scaling=standard")
    (tmp_path / "other.csv").write_text((tmp_path / "mails.csv").read_text())
    config = label_table.prepare(arguments(tmp_path / "other.csv", *given))
    assert load(config, {}).model.scaling == "standard"


class Letters:
    """An embedder that counts letters."""

    name, size = "letters 1", 26

    def embed_one(self, text):
        return [text.count(chr(97 + letter)) for letter in range(26)]


NEEDS_FILES = pytest.mark.skipif(label_words.embedder() is None, reason="needs streamsvm[embed]")


@pytest.mark.parametrize("is_installed", [pytest.param(True, marks=NEEDS_FILES), False])
def test_the_name_of_the_class_is_what_a_job_begins_with(messages, monkeypatch, is_installed):
    monkeypatch.setattr(label_table, "embedder", Letters if is_installed else lambda: None)
    names = ("--text", "body", "--set", "label.positive=invoice", "--set", "label.negative=no")
    config = label_table.prepare(arguments(messages, *names))
    text = config.read_text()
    settings = load(config, {}, with_model=False)
    events = read_json(settings.log.dir, "records")
    said = {event["id"]: np.array(Letters().embed_one(event["text"])) for event in events}
    words = np.array(Letters().embed_one("invoice"))
    near = sorted(said, key=lambda id_: -(said[id_] @ words) / np.linalg.norm(said[id_]))[:5]
    assert settings.labelling.first == (tuple(near) if is_installed else ())
    assert settings.labelling.seed_words == (() if is_installed else ("invoice", "invoices"))
    assert settings.features.embed == ({"body": "wordllama"} if is_installed else {})
    label_table.prepare(arguments(messages, "--text", "body"))
    assert config.read_text() == text


@pytest.mark.parametrize(
    ("name", "words"),
    [("games", ["games", "game"]), ("news", ["news"]), ("bug_report", ["bug report", "bug reports"]), ("yes", [])],
)
def test_texts_may_hold_the_singular_or_the_plural_of_the_name(name, words):
    assert label_words.words_of(name) == words


@pytest.mark.parametrize(
    "flag", ["label.positive=Yes", "label.positive=1", 'labelling.first=["r7"]', 'labelling.seed_words=["x"]']
)
def test_a_name_that_says_nothing_or_words_of_a_lead_change_nothing(messages, monkeypatch, flag):
    monkeypatch.setattr(label_table, "embedder", lambda: None)
    given = [flag, "label.negative=no", *(["label.positive=spam"] if "positive" not in flag else [])]
    config = label_table.prepare(arguments(messages, "--text", "body", *(w for f in given for w in ("--set", f))))
    labelling = load(config, {}).labelling
    assert (labelling.first, labelling.seed_words) == (
        ("r7",) if "first" in flag else (), ("x",) if "words" in flag else (),
    )  # fmt: skip


@pytest.mark.parametrize("option", ["--text", "--image"])
def test_a_field_that_the_table_lacks_is_refused(messages, tmp_path, option):
    with pytest.raises(FileError, match="no record has a field 'nope' to show; there are body, sender"):
        label_table.prepare(arguments(messages, option, "nope"))
    assert not (tmp_path / "messages-labels" / "log").exists()


def test_files_that_a_table_names_are_shown(tmp_path):
    (tmp_path / "pets.csv").write_text("file,weight\na.png,4\n")
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "a.png").write_bytes(b"an image")
    given = (tmp_path / "pets.csv", "--image", "file")
    with pytest.raises(FileError, match="names a file, but their folder is not known"):
        label_table.prepare(arguments(*given))
    with pytest.raises(FileError, match="pets-labels/photos has no such image"):
        label_table.prepare(arguments(*given, "--set", "labelling.image_folder=photos"))
    config = label_table.prepare(arguments(*given, "--set", "labelling.image_folder=../photos"))
    assert 'image_folder = "../photos"' in config.read_text()
    assert label_table.prepare(arguments(*given)) == config  # which knows the folder


def test_a_job_goes_on_with_the_same_table_only(messages, tmp_path):
    label_table.prepare(arguments(messages, "--text", "body"))
    text = messages.read_text()
    messages.write_text(text + "one more,bob\n")
    label_table.prepare(arguments(messages, "--text", "body"))
    assert len(read_json(tmp_path / "messages-labels" / "log", "records")) == 401
    for other in (
        text.replace("prize", "price"),
        text[: len(text) // 2].rpartition("\n")[0] + "\n",
        text + "another,bob\n",
    ):
        messages.write_text(other)
        with pytest.raises(FileError, match="record 401 is not the one that messages-labels has from an earlier call"):
            label_table.prepare(arguments(messages, "--text", "body"))


def test_a_new_job_keeps_what_the_first_call_set(messages, tmp_path):
    """Otherwise `streamsvm labels` would write 1 and 0 in the place of the names."""
    given = {
        "label.positive": 'sp"am',
        "label.negative": "ham",
        "labelling.max_labels": "30",
        "daemon.checkpoint_seconds": "2",
    }
    flags = [word for name, value in given.items() for word in ("--set", f"{name}={value}")]
    with pytest.raises(ConfigError):
        label_table.prepare(arguments(messages, "--text", "body", "--set", "label.positive=spam"))
    config = label_table.prepare(arguments(messages, "--text", "body", *flags))
    settings = load(config, {})
    assert settings.label.meanings == {'sp"am': True, "ham": False}
    assert (settings.labelling.max_labels, settings.daemon.checkpoint_seconds, settings.features.raw) == (30, 2.0, True)
    label_table.prepare(arguments(messages, "--text", "body", "--set", "labelling.max_labels=40"))
    assert load(config, {}) == settings


def test_options_of_a_table_do_not_go_with_a_configuration(config, call):
    code, _, (err,) = call("label", config, "--text", "body", "--check")
    assert (code, "--text goes with a table in the place of" in err) == (2, True)


@pytest.mark.long
@pytest.mark.parametrize("has_amounts", [False, True])
def test_the_model_finds_most_positives(messages, has_amounts):
    """Without features of the texts, or with numbers that are not scaled as the model scales, chance does as well."""
    if has_amounts:
        amounts = np.random.default_rng(1).lognormal(8.0, 1.0, 400).tolist()
        lines = messages.read_text().splitlines()
        rows = [f"{line},{amount:.2f}" for line, amount in zip(lines[1:], amounts, strict=True)]
        messages.write_text("\n".join([f"{lines[0]},amount", *rows]) + "\n")
    config = label_table.prepare(arguments(messages, "--text", "body"))
    settings = load(config, {}, ["labelling.max_labels=100"])
    found = []

    def truth(shown):
        found.append(shown.event["text"].endswith("prize"))
        return found[-1]

    answers = oracle(truth, "program", delay=0.0, noise=0.0, quota=100)
    answer_questions(settings, answers, lambda: False, train=True)
    assert (len(found), sum(found) >= 15) == (100, True)
