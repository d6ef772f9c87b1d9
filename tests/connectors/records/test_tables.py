"""Raw records of files: what stays as it is, what is refused and where, and the two shapes of an event."""

import json
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest

from streamsvm.connectors.records.columns import Columns
from streamsvm.connectors.records.files import read_events, read_examples
from streamsvm.connectors.records.tables import plain
from streamsvm.connectors.runtime.folders import FileError

TABLE = 'id,age,job,since,bought\nc1,31,clerk,2026-01-05,yes\nc2,,"smith, b",,no\nc3,x,NA,2026-01-06 10:00,\n'


def write(tmp_path, name, content):
    path = tmp_path / name
    path.write_text(content)
    return path


def events(path, **columns):
    return [json.loads(value) for value in read_events(path, "auto", Columns(**columns))]


def refusals(path, **columns):
    with pytest.raises(FileError) as caught:
        events(path, **columns)
    return [problem.removeprefix(str(path)).lstrip(",: ") for problem in caught.value.problems]


NAMED = {"id": "id", "label": "bought", "positive": "yes", "time": "since"}


def test_cells_stay_as_they_are(tmp_path):
    first, second, third = events(write(tmp_path, "d.csv", TABLE), raw="event", **NAMED)
    x = {"age": "31", "job": "clerk", "since": "2026-01-05"}
    assert first == {"id": "c1", "y": True, "ts": "2026-01-05", "x": x}
    assert second == {"id": "c2", "y": False, "x": {"age": "", "job": "smith, b", "since": ""}}
    assert (third["y"], third["x"]["job"]) == (None, "NA")


def test_a_flat_record_is_the_row_with_the_label_as_the_configuration_spells_it(tmp_path):
    names = {"yes": True, "no": False}
    path = write(tmp_path, "d.csv", TABLE.replace("no\n", " no \n"))
    columns = {"raw": "flat", "id": "id", "label": "bought", "names": names}
    assert [event["bought"] for event in events(path, **columns)] == ["yes", "no", None]
    assert events(path, **columns)[1] == {"id": "c2", "age": "", "job": "smith, b", "since": "", "bought": "no"}


def test_flat_records_may_lack_the_field_of_the_label(tmp_path):
    path = write(tmp_path, "d.csv", "id,a\n1,x\n")
    assert events(path, raw="flat", id="id", label="bought") == [{"id": "1", "a": "x", "bought": None}]


@pytest.mark.parametrize("separator", [";", "\t", "|"])
def test_columns_may_be_separated_otherwise(tmp_path, separator):
    path = write(tmp_path, "d.csv", separator.join("ab") + "\n" + separator.join(["1,5", "x"]) + "\n")
    assert events(path, raw="event") == [{"id": "d:2", "x": {"a": "1,5", "b": "x"}}]


def test_nested_objects_and_lists_are_kept(tmp_path):
    rows = [{"user": {"id": 7, "vip": True, "good": 1}, "tags": ["a"], "z": [1, 2.5], "n": None}]
    path = write(tmp_path, "d.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    (event,) = events(path, raw="event", id="user.id", label="user.good")
    assert event == {"id": 7, "y": True, "x": {"user": {"vip": True}, "tags": ["a"], "z": [1, 2.5], "n": None}}
    (flat,) = events(path, raw="flat", label="user.good", names={"1": True, "0": False})
    assert flat == rows[0] | {"user": {"id": 7, "vip": True, "good": "1"}}


def test_events_are_kept_as_events(tmp_path):
    event = {"id": "a", "x": {"job": "clerk", "home": {"zip": None}}, "y": 1, "ts": 1767225600, "text": "Hi"}
    path = write(tmp_path, "d.jsonl", json.dumps(event) + "\n")
    assert events(path, raw="event") == [event | {"y": True}]


def test_values_of_other_types():
    assert plain(float("nan"), "") is None
    assert plain({"a": [float("inf"), 1.5]}, "") == {"a": [None, 1.5]}
    assert plain(datetime(2026, 1, 5, tzinfo=UTC), "") == "2026-01-05T00:00:00+00:00"
    assert (plain(date(2026, 1, 5), ""), plain(timedelta(minutes=2), "")) == ("2026-01-05", 120.0)
    assert (plain(Decimal("1.10"), ""), plain(Decimal("NaN"), "")) == ("1.10", None)
    with pytest.raises(FileError, match=r"here: .* \(bytes\) is neither a number nor a text"):
        plain(b"abc", "here")


def test_parquet(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    rows = [
        {"id": 1, "n": 1.5, "at": datetime(2026, 1, 5), "good": True},
        {"id": 2, "n": None, "at": None, "good": None},
    ]
    parquet.write_table(arrow.Table.from_pylist(rows), tmp_path / "d.parquet")
    first, second = events(tmp_path / "d.parquet", raw="event", id="id", label="good", time="at")
    at = "2026-01-05T00:00:00"
    assert first == {"id": 1, "y": True, "ts": at, "x": {"n": 1.5, "at": at}}
    assert second == {"id": 2, "y": None, "x": {"n": None, "at": None}}


def test_the_first_ten_mistakes_have_lines_and_columns(tmp_path):
    lines = [f"{'' if i % 2 else i},x,{'maybe' if i % 3 else 'yes'},soon" for i in range(14)]
    path = write(tmp_path, "d.csv", "id,a,y,t\n0,x,yes,2026-01-05\n0,x,no,2026-01-05\n" + "\n".join(lines) + "\n")
    found = refusals(path, raw="event", id="id", label="y", positive="yes", time="t")
    assert len(found) == 11
    assert found[0] == "line 4, column 't': 'soon' is no time in ISO 8601 and no number of seconds since 1970"
    assert found[1] == "line 5: no id in 'id'"
    assert found[2].startswith("line 6, column 'y': label 'maybe' is a third one, beside 'yes' and 'no'")
    assert found[10] == "and 4 more"


@pytest.mark.parametrize(
    ("name", "content", "columns", "message"),
    [
        ("d.csv", "a,b\n1,2\n", {"label": "c"}, "no record has a field 'c'; there are 'a', 'b'"),
        ("d.csv", "a,b\n1\n", {}, "line 2: 1 columns, but the header has 2"),
        ("d.jsonl", '{"a": {"b": 1}}\n', {"label": "a.c"}, "no record has a field 'a.c'; there are 'a'"),
        ("d.jsonl", '{"a": 1.5}\n', {"id": "a"}, "line 1, column 'a': an id is a text or a whole number, not 1.5"),
        (
            "d.svm",
            "1 1:2\n",
            {},
            "the suffix '.svm' holds no raw records; they are CSV, JSON lines (.jsonl) or Parquet",
        ),
    ],
)
def test_what_is_refused(tmp_path, name, content, columns, message):
    assert refusals(write(tmp_path, name, content), raw="event", **columns)[0] == message


def test_a_record_without_a_label_is_no_example(tmp_path):
    path, columns = write(tmp_path, "d.csv", TABLE), Columns(raw="event", **NAMED)
    assert [example.event.y for example in read_examples(path, "auto", columns)] == [1, 0]
    assert columns.blanks.total() == 1
    path.write_text(TABLE.removesuffix("\n") + "no\n")
    assert [example.event.y for example in read_examples(path, "auto", Columns(raw="event", **NAMED))] == [1, 0, 0]
