"""The page about a run: its parts, the figures in them, and what it says where there are none."""

import html
import json
import re
import sys
from collections import defaultdict
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from logged import config_text

from streamsvm.connectors.logs.embedded import LocalLog
from streamsvm.connectors.report import drawing, drift, panels
from streamsvm.connectors.report import page as report_page
from streamsvm.connectors.report.drift import Block, error_blocks, find_changes
from streamsvm.connectors.settings.loading import load
from streamsvm.connectors.trainer import trainer as daemon
from streamsvm.connectors.trainer.state import checkpoint, stored_state
from streamsvm.connectors.trainer.state.checkpoint import Checkpoint, load_newest
from streamsvm.connectors.trainer.state.quality.prequential import Snapshot
from streamsvm.connectors.trainer.state.stored_state import read_state

CONFIG = config_text(window=100).replace("[model]", "[model]\ngamma = 1.0")
PANELS = {"error": "Error", "support": "Support vectors", "labels": "Labels", "lag": "Lag", "drift": "Drift"}
VOID = {"meta", "link", "br", "path", "use", "rect", "stop"}


pytestmark = pytest.mark.usefixtures("no_waiting_for_the_disk")


@pytest.fixture
def pictures():
    """For tests that look at pictures, which take most of the time; others get empty ones."""


@pytest.fixture(autouse=True)
def _empty_pictures(request, monkeypatch):
    if "pictures" not in request.fixturenames:
        empty = '<svg role="img" aria-label="{}"></svg>'
        monkeypatch.setattr(drawing, "draw_svg", lambda plot, name, alt: empty.format(html.escape(alt)))


class Page(HTMLParser):
    """Texts and attributes of the elements, by the id of the innermost section."""

    def __init__(self, text):
        super().__init__()
        self.source = text
        self.open, self.places = [], [""]
        self.texts, self.tags = defaultdict(list), defaultdict(list)
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        if tag == "section":
            self.places.append(attributes["id"])
        self.tags[self.places[-1]].append((tag, attributes))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags[self.places[-1]].append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag
        if tag == "section":
            self.places.pop()

    def handle_data(self, data):
        if data.strip():
            self.texts[self.places[-1]].append(data.strip())

    def text(self, section):
        return " ".join(self.texts[section])

    def fact(self, name, number=0, part="run"):
        texts = self.texts[f"p{number}-{part}"]
        return texts[texts.index(name) + 1]

    def pictures(self, section):
        return [attributes for tag, attributes in self.tags[section] if tag == "svg"]

    def elements(self):
        return [item for items in self.tags.values() for item in items]


@pytest.fixture
def start(tmp_path):
    """Run a daemon over a stream, and return its states; more of the same stream the next time."""

    def start(extra="", n=300, n_partitions=1, change=None, config=CONFIG, labelled=True):
        (tmp_path / "app.toml").write_text(extra + config)
        settings = load(tmp_path / "app.toml", {})
        rng = np.random.default_rng(0)
        with LocalLog(tmp_path / "log") as log:
            log.create("events", n_partitions)
            first = sum(log.end_offsets("events").values())
            for i in range(first, first + n):
                a, b = rng.normal(size=2).tolist()
                y = bool(a * b > 0) ^ (change is not None and i >= change)
                event = {"id": i, "x": {"a": a, "b": b}, **({"y": y} if labelled else {})}
                log.produce("events", json.dumps(event).encode(), key=b"%d" % (i % 3), partition=i % n_partitions)
        return daemon.run(settings)

    return start


@pytest.fixture
def read(tmp_path):
    """Write the page, and read it."""

    def read(settings=None):
        path, _ = report_page.write_report(tmp_path / "state", settings=settings)
        return Page(path.read_text(encoding="utf-8"))

    return read


@pytest.fixture
def drawn(pictures, monkeypatch):
    """What is drawn as lines, by label."""
    from matplotlib.axes import Axes

    lines, plot = {}, Axes.plot

    def note(self, x, y, **options):
        lines[options.get("label") or len(lines)] = (list(x), list(y))
        return plot(self, x, y, **options)

    monkeypatch.setattr(Axes, "plot", note)
    return lines


# --- the parts --------------------------------------------------------------------------------------------------------


def test_every_part_is_there_under_a_heading(start, read, pictures):
    start()
    page = read()
    assert page.texts[""][-2:][0] == "events"
    for name, title in PANELS.items():
        section = f"p0-{name}"
        assert page.texts[section][0] == title
        assert ("h3", {}) in page.tags[section]
        (picture,) = page.pictures(section)
        assert picture["role"] == "img"
        assert len(picture["aria-label"]) > 20
        assert [tag for tag, _ in page.tags[section]].count("figcaption") == 1
    levels = [int(tag[1]) for tag in re.findall(r"<(h\d)", page.source)]
    assert levels == [1, 2] + [3] * 6


def test_it_says_what_run_it_is(tmp_path, start, read):
    (state,) = start().values()
    page = read()
    assert page.fact("Model").startswith("lasvm, C = 10.0, ")
    assert page.fact("Features") == "2 known; any names"
    assert page.fact("Partition") == "0 of topic events"
    assert page.fact("Consumed") == "events up to offset 300"
    assert page.fact("Model digest") == state.model.digest()
    assert page.fact("Members") == f"{state.model.n_members:,}; {state.model.n_support:,} of them are support vectors"
    (path,) = [path for path in (tmp_path / "state" / "p0").glob("*.ssvm") if path.name in page.fact("Checkpoint")]
    assert page.fact("Checkpoint").startswith(f"number {state.sequence}, written 20")
    assert load_newest(tmp_path / "state" / "p0")[1].to_bytes() == path.read_bytes()


def test_the_summary_has_the_figures_of_the_state(start, read):
    (state,) = start().values()
    page = read()
    scores = state.metrics.cumulative()
    texts = page.texts["summary"]
    names, cells = texts[texts.index("stream") : texts.index("events-0")], texts[texts.index("events-0") :]
    row = dict(zip(names, cells, strict=True))
    assert cells[:7] == ["events-0", "300", "300", *(f"{score:.2%}" for score in scores[1:])]
    assert row["support vectors"] == f"{state.model.n_support}"
    assert row["model"] == f"{len(state.model.to_bytes()) / 1024:,.0f} KiB"
    assert "checkpoint" in row


def test_the_curves_are_those_of_the_state(start, read, drawn):
    (state,) = start().values()
    read()
    rows = [*state.history.rows, state.history.latest]
    n = [row.n for row in rows]
    assert n[-1] == 300
    assert len(n) == len(set(n)) > 4
    assert drawn["predictions"] == (n, [100 * row.error for row in rows])
    assert drawn["1 − g-mean"] == (n, [100 * (1 - row.g_mean) for row in rows])
    assert drawn["support vectors"] == (n, [row.n_support for row in rows])
    assert drawn["members"] == (n, [row.n_members for row in rows])
    assert drawn["labels"] == (n, n)
    assert rows[-1].n_support == state.model.n_support
    assert rows[-1].n_members == state.model.n_members
    assert rows[-1].error == state.metrics.rolling_error()
    assert rows[-1].n_errors == state.metrics.n_errors == round(300 * state.metrics.cumulative().error)
    assert rows[0].lag > rows[-1].lag == 0
    assert all(0 <= row.age < 3600 for row in rows)


def test_estimates_are_drawn_and_told(start, read, pictures, monkeypatch):
    from matplotlib.axes import Axes

    bars = {}
    monkeypatch.setattr(
        Axes, "errorbar", lambda self, x, y, yerr, **options: bars.update({options["label"]: (x, y, yerr)})
    )
    (state,) = start("[estimates]\nloo = true\nfolds = 4\nevery = 40\nmemory = 50\nshare = 1e9\n").values()
    page = read()
    for kind, label in (("loo", "leave-one-out"), ("folds", "folds")):
        items = [item for item in state.estimates.history if item.kind == kind]
        x, value, (below, above) = bars[label]
        assert x == [item.offset for item in items]
        np.testing.assert_allclose(value, [100 * item.error.value for item in items])
        np.testing.assert_allclose(value - below, [100 * item.error.low for item in items], atol=1e-9)
        np.testing.assert_allclose(value + above, [100 * item.error.high for item in items], atol=1e-9)
        newest = state.estimates.latest[kind]
        assert f"Newest by {label}: {newest.error.value:.2%}" in page.text("p0-error")
        assert f"after {newest.offset} records" in page.text("p0-error")


def test_several_partitions_have_a_row_and_a_part_each(start, read, pictures):
    states = start(n_partitions=2)
    page = read()
    for number, state in states.items():
        row = page.texts["summary"][page.texts["summary"].index(f"events-{number}") :]
        assert row[1:3] == [f"{state.offset}", f"{state.metrics.n}"]
        assert page.fact("Model digest", number) == state.model.digest()
        assert page.texts[f"p{number}"][0] == f"events-{number}"
    ids = [attributes["id"] for _, attributes in page.elements() if "id" in attributes]
    assert len(ids) == len(set(ids))  # of the pictures too
    links = {attributes["href"][1:] for tag, attributes in page.elements() if tag == "a"}
    assert links == {"p0", "p1"} <= set(ids)


def test_models_by_key(start, read, drawn):
    (state,) = start(config=CONFIG.replace("[daemon]", '[daemon]\nper = "key"')).values()
    page = read()
    assert page.fact("Models") == "3, one for each record key"
    assert "sums over the models in memory" in page.text("p0-support")
    assert drawn["support vectors"][1][-1] == state.models.sizes().n_support


# --- labels -----------------------------------------------------------------------------------------------------------


def ask_and_answer(tmp_path, n_rounds=4):
    """A trainer that asks, and somebody who knows the answers."""
    config = '[log]\nlabels = "labels"\nquestions = "questions"\n[labelling]\nopen = 6\nstop = "never"\nexplore = 0.5\n'
    rng = np.random.default_rng(0)
    (tmp_path / "app.toml").write_text(config + CONFIG)
    settings = load(tmp_path / "app.toml", {})
    truth, answered = {}, set()
    with LocalLog(tmp_path / "log") as log:
        for i in range(100):
            a, b = rng.normal(size=2).tolist()
            truth[f"e{i}"] = a > 0
            log.produce("events", json.dumps({"id": f"e{i}", "x": {"a": a, "b": b}}).encode())
    for _ in range(n_rounds):
        state = daemon.run(settings)[0]
        with LocalLog(tmp_path / "log") as log:
            log.seek("questions", 0, 0)
            asked = [json.loads(record.value) for record in log.poll(0, 10**6) if record.value]
            for id_ in [question["id"] for question in asked if "id" in question]:
                if id_ not in answered:
                    answered.add(id_)
                    log.produce("labels", json.dumps({"id": id_, "y": bool(truth[id_])}).encode())
    return daemon.run(settings)[0] if n_rounds else state


def test_what_the_answers_are_worth(tmp_path, read, drawn):
    state = ask_and_answer(tmp_path)
    page = read()
    counts, curve = state.labelling.loop.counts, state.labelling.loop.curve()
    assert page.fact("Labels", part="progress") == (
        f"{counts.n_labels}: {counts.n_positive} positive, {counts.n_negative} negative"
    )
    assert page.fact("Questions", part="progress").startswith(f"{counts.n_asked} asked, {counts.n_answered} answered, ")
    assert counts.n_answered >= 20
    x, y = drawn["random questions"]
    assert (x, y) == (
        [point.n_labels for point in curve if point.agreement_random is not None],
        [100 * (1 - point.agreement_random) for point in curve if point.agreement_random is not None],
    )
    assert ([point.n_labels for point in curve], [point.n_support for point in curve]) in drawn.values()
    assert "How good is the model?" in page.text("p0-error")
    assert page.fact("Consumed") == f"events up to offset 100, labels (labels) up to {counts.n_answered}"


def test_before_the_first_answer(tmp_path, read):
    config = '[log]\nlabels = "labels"\nquestions = "questions"\n'
    (tmp_path / "app.toml").write_text(config + CONFIG)
    with LocalLog(tmp_path / "log") as log:
        for i in range(30):
            log.produce("events", json.dumps({"id": i, "x": {"a": i}}).encode())
    daemon.run(load(tmp_path / "app.toml", {}))
    page = read()
    assert "The curve begins with the first answer." in page.text("p0-labels")
    assert "No labelled event was predicted yet" in page.text("p0-error")
    assert page.pictures("p0-labels") == page.pictures("p0-error") == []


def test_without_labels_it_says_what_to_set(start, read):
    start(labelled=False)
    page = read()
    assert page.pictures("p0-error") == []
    assert "No labelled event was predicted yet. Labels come with the events" in page.text("p0-error")
    assert "0 of 300 records had a label" in page.text("p0-labels")
    assert "log.questions and log.labels" in page.text("p0-labels")
    assert "Drift needs labelled events before and after a point" in page.text("p0-drift")


# --- lag --------------------------------------------------------------------------------------------------------------


def test_the_lag_is_asked_of_the_embedded_log(tmp_path, start, read):
    start()
    assert "Only the log knows" in read().text("p0-lag")
    settings = load(tmp_path / "app.toml", {})
    assert "ends at offset 300 now, 0 records after" in read(settings).text("p0-lag")
    with LocalLog(tmp_path / "log") as log:
        log.produce("events", b"{}")
    assert "ends at offset 301 now, 1 record after" in read(settings).text("p0-lag")


def test_a_broker_is_not_asked(tmp_path, start, read):
    start()
    settings = replace(load(tmp_path / "app.toml", {}), kafka={"bootstrap_servers": "127.0.0.1:9"})
    page = read(settings)
    assert "Only the log knows" in page.text("p0-lag")
    assert "Waiting: 0 records were known to wait when the checkpoint was written." in page.text("p0-lag")


# --- drift ------------------------------------------------------------------------------------------------------------


def blocks_of(*parts):
    """Blocks of 50 labelled events with these numbers of errors."""
    return [Block(50 * i, 50 * (i + 1), 50, k) for i, k in enumerate(parts)]


@pytest.mark.parametrize("step", [1, 3])
def test_a_change_is_found_where_it_is(monkeypatch, step):
    monkeypatch.setattr(drift, "MAX_SEEN", 6000 // step)
    (worse, better), taken = find_changes(blocks_of(*[5] * 40, *[25] * 40, *[5] * 40))
    assert taken == step
    assert 2000 < worse.n <= 2300
    assert 4000 < better.n <= 4300
    assert worse.before == pytest.approx(0.1, abs=0.06)
    assert worse.after == better.before == pytest.approx(0.5, abs=0.06)
    assert better.after == pytest.approx(0.1, abs=0.01)


def test_no_change_is_found_where_there_is_none():
    rng = np.random.default_rng(0)
    assert find_changes(blocks_of(*rng.binomial(50, 0.1, 200).tolist()))[0] == []


def test_blocks_are_the_differences_of_the_history():
    def row(n, n_labels, n_errors):
        return Snapshot(n, 0.0, 0.0, 0, 0.0, n_labels=n_labels, n_errors=n_errors)

    rows = [row(50, 40, 9), row(100, 40, 9), row(150, 90, 12)]
    assert error_blocks(rows) == [Block(0, 50, 40, 9), Block(100, 150, 50, 3)]
    old = Snapshot(25, 0.0, 0.0, 0, 0.0)
    assert error_blocks([old, *rows]) == [Block(100, 150, 50, 3)]
    assert error_blocks([old]) == error_blocks([]) == []


def test_a_drift_is_marked_and_told(start, read, pictures, monkeypatch):
    from matplotlib.axes import Axes

    marks = []
    monkeypatch.setattr(Axes, "axvline", lambda self, x, **options: marks.append((x, options["linestyle"])))
    (state,) = start(n=900, change=600).values()
    page = read()
    changes, _ = find_changes(error_blocks([*state.history.rows, state.history.latest]))
    worse = [change for change in changes if change.after > change.before]
    assert 600 < worse[0].n < 800
    assert (worse[0].n, "-") in marks
    assert len(marks) == len(changes)
    told = f"from {worse[0].before:.1%} to {worse[0].after:.1%} at about {worse[0].n:,} records"
    assert told in page.text("p0-drift")
    assert "river's detector ADWIN" in page.text("p0-drift")
    assert "ADWIN ran over 900 predictions in" in page.text("p0-drift")
    assert f"{state.history.latest.shift:.2f} at the end" in page.text("p0-drift")


# --- a file that needs nothing, and harms nothing ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "shifts", [[1e308, -1e308, 0.0], [1.7e308], [float("inf"), 1.0], [float("nan"), 1e308], [5e-324, 0.0]]
)
def test_the_largest_and_smallest_numbers_are_drawn(shifts):
    pytest.importorskip("matplotlib")
    rows = [
        Snapshot(100 * n, 0.1, 0.9, 5, 1.0, 6.0, 100.0 * n, 10.0 * n, shift, shift, shift)
        for n, shift in enumerate(shifts, 1)
    ]
    rows.append(rows[-1]._replace(n=10_000, n_labels=10_000.0, n_errors=500.0))
    picture = drawing.picture(panels.drift_panel(rows).plot, "p0-drift", "")
    assert not re.search(r"\b(nan|inf)\b", picture)


def test_nothing_comes_from_elsewhere(start, read, pictures):
    start()
    page = read()
    assert "://" not in page.source
    assert "@import" not in page.source
    tags = {tag for tag, _ in page.elements()}
    assert not tags & {"script", "iframe", "img", "object", "embed", "base", "form"}
    for _, attributes in page.elements():
        for name, value in attributes.items():
            assert not name.startswith("on")
            if name in ("href", "src", "xlink:href"):
                assert value.startswith(("#", "data:,"))
    assert all(target.startswith("#p0-") for target in re.findall(r"url\(([^)]*)\)", page.source))


def test_names_are_escaped(tmp_path, start):
    start('[label]\npositive = "<b>yes</b>"\nnegative = "no & \\"never\\""\n', labelled=False)
    (item,) = read_state(tmp_path / "state")
    fingerprint = item.checkpoint.fingerprint | {
        "log.topic": "<b>",
        "features.names": ["<i>a</i>"],
        "model.window": "<s>",
    }
    item = item._replace(checkpoint=replace(item.checkpoint, fingerprint=fingerprint))
    page = Page(report_page.page(tmp_path / "<u>$here</u>", [item], {}))
    assert not {tag for tag, _ in page.elements()} & {"b", "i", "s", "u"}
    assert page.texts["p0"][0] == "<b>-0"
    assert page.fact("Labels") == '<b>yes</b> (positive), no & "never" (negative)'
    assert "names = <i>a</i>" in page.fact("Features")
    assert "Bounded by model.window = <s>." in page.text("p0-support")
    assert "<u>$here</u>" in page.text("")


def without_what_is_new(folder):
    """Make the newest checkpoint one of an older version."""
    number, newest = load_newest(folder)
    arrays = {name: array for name, array in newest.arrays.items() if name not in ("history.more", "history.latest")}
    old = replace(newest, arrays=arrays)
    checkpoint.checkpoint_path(folder, number).write_bytes(old.to_bytes())
    return old


def test_an_old_checkpoint(tmp_path, start, read, drawn):
    (before,) = start().values()
    without_what_is_new(tmp_path / "state" / "p0")
    page = read()
    for name, what in (("labels", "number of labels"), ("lag", "lag"), ("drift", "number of errors")):
        assert f"An older version wrote this checkpoint, without the {what}" in page.text(f"p0-{name}")
        assert page.pictures(f"p0-{name}") == []
    assert "without the number of members" in page.text("p0-support")
    assert "members" not in drawn
    assert drawn["support vectors"] == ([r.n for r in before.history.rows], [r.n_support for r in before.history.rows])
    (after,) = start(n=200).values()
    assert after.offset == 500
    assert [row[:5] for row in after.history.rows[: len(before.history.rows)]] == [
        row[:5] for row in before.history.rows
    ]
    page = read()
    assert all(len(page.pictures(f"p0-{name}")) == 1 for name in PANELS)
    assert drawn["labels"][0][0] > 300
    assert "over 1" in page.text("p0-drift")


def test_a_run_too_short_for_a_curve(start, read, pictures):
    start(n=25)
    page = read()
    assert len(page.pictures("p0-support")) == 1
    assert page.pictures("p0-drift") == []
    assert "Drift needs labelled events before and after a point" in page.text("p0-drift")


def test_a_checkpoint_from_before_the_first_record(tmp_path, start, read, pictures):
    start(n=60)
    folder = tmp_path / "state" / "p0"
    newest = max(folder.glob("checkpoint-*"))
    for path in (newest, *folder.glob("journal-*")):
        path.unlink()
    page = read()
    assert page.fact("Consumed") == "events up to offset 0"
    assert page.fact("Members") == "0; 0 of them are support vectors"
    assert "older version" not in page.source
    assert "recorded as soon as the trainer consumes a record" in page.text("p0-lag")


def test_a_running_daemon_is_left_alone(tmp_path, start, read):
    start(n=200)
    pages = []

    def stop():
        if not pages:
            before = {path: path.read_bytes() for path in (tmp_path / "state").rglob("*") if path.is_file()}
            pages.append(read())
            after = {path: path.read_bytes() for path in (tmp_path / "state").rglob("*") if path.is_file()}
            assert after.keys() - before.keys() == {tmp_path / "state" / "report.html"}
            assert before == {path: after[path] for path in before}
        return False

    with LocalLog(tmp_path / "log") as log:
        log.produce("events", b'{"id": "new", "x": {"a": 1}, "y": true}')
    (state,) = daemon.run(load(tmp_path / "app.toml", {}), stop).values()
    assert state.offset == 201
    assert pages[0].fact("Consumed") == "events up to offset 200"
    assert read().fact("Consumed") == "events up to offset 201"


def test_a_checkpoint_that_is_removed_while_it_is_read(tmp_path, start, monkeypatch):
    start(n=60)
    n_calls = 0

    def gone(folder):
        nonlocal n_calls
        n_calls += 1
        if n_calls < 3:
            raise FileNotFoundError(folder)
        return load_newest(folder)

    monkeypatch.setattr(stored_state, "load_newest", gone)
    assert len(read_state(tmp_path / "state")) == 1
    monkeypatch.setattr(
        stored_state, "load_newest", lambda folder: Checkpoint.from_bytes((folder / "none").read_bytes())
    )
    with pytest.raises(FileNotFoundError):
        read_state(tmp_path / "state")


# --- the command ------------------------------------------------------------------------------------------------------


def test_it_says_where_the_page_is(tmp_path, start, call):
    start(n_partitions=2)
    path = tmp_path / "state" / "report.html"
    assert call("report", tmp_path / "state") == (0, f"wrote {path}: 2 partitions, 300 records\n", "")
    assert path.exists()
    path.unlink()
    code, out, _ = call("report", tmp_path / "app.toml", "--out", tmp_path / "page.html")
    assert (code, out) == (0, f"wrote {tmp_path / 'page.html'}: 2 partitions, 300 records\n")
    assert "The log ends at offset 150 now" in Page((tmp_path / "page.html").read_text()).text("p1-lag")
    assert not path.exists()


@pytest.mark.parametrize("make", [None, "folder", "file"])
def test_what_is_no_state_folder_is_exit_code_2(tmp_path, call, make):
    path = tmp_path / "given"
    if make == "folder":
        (path / "p0").mkdir(parents=True)
    elif make == "file":
        path.touch()
    code, out, err = call("report", path)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert f"streamsvm: {path}: " in err
    assert "daemon.state_dir" in err
    assert not (path / "report.html").exists()


def test_a_page_that_cannot_be_written_is_refused_first(tmp_path, call):
    code, _, err = call("report", tmp_path / "state", "--out", tmp_path / "none" / "page.html")
    assert (code, err) == (1, f"streamsvm: {tmp_path}/none/page.html: there is no folder '{tmp_path}/none'\n")


def test_a_damaged_checkpoint_is_exit_code_4(tmp_path, start, call):
    start(n=60)
    for path in (tmp_path / "state" / "p0").glob("checkpoint-*"):
        path.write_bytes(path.read_bytes()[:-1])
    code, _, err = call("report", tmp_path / "state")
    assert (code, "can be read" in err) == (4, True)


def test_without_matplotlib_the_message_says_what_to_install(tmp_path, start, call, pictures, monkeypatch):
    start(n=60)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    code, out, err = call("report", tmp_path / "state")
    assert (code, out) == (2, "")
    assert "pip install 'streamsvm[plot]'" in err
    assert not (tmp_path / "state" / "report.html").exists()
