"""Files to events: every format, and messages that name the line and the column."""

import json
import tracemalloc
import zipfile

import numpy as np
import pytest
import scipy.sparse as sp

from streamsvm.connectors.records import arrays, text_files
from streamsvm.connectors.records.classes import Vocabulary
from streamsvm.connectors.records.columns import Columns
from streamsvm.connectors.records.files import read_events, read_examples
from streamsvm.connectors.runtime.folders import FileError


def events(path, file_format="auto", **columns):
    return [json.loads(value) for value in read_events(path, file_format, Columns(**columns))]


def write(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def refusal(path, file_format="auto", **columns):
    with pytest.raises(FileError) as caught:
        events(path, file_format, **columns)
    assert str(caught.value).startswith(str(path))
    return str(caught.value).removeprefix(str(path)).lstrip(",: ")


# --- CSV --------------------------------------------------------------------------------------------------------------


def test_csv(tmp_path):
    path = write(tmp_path, "d.csv", "a,b,y\n1,2.5,1\n-3,4e-1,0\n\n")
    assert events(path, label="y") == [
        {"id": "d:2", "y": True, "x": {"a": 1.0, "b": 2.5}},
        {"id": "d:3", "y": False, "x": {"a": -3.0, "b": 0.4}},
    ]
    assert events(path)[0] == {"id": "d:2", "x": {"a": 1.0, "b": 2.5, "y": 1.0}}
    assert events(write(tmp_path, "d.tsv", path.read_text().replace(",", "\t")), label="y") == events(path, label="y")


def test_csv_with_ids_quotes_and_a_byte_order_mark(tmp_path):
    path = write(tmp_path, "d.csv", '\ufeffkey,"b, c",y\r\nk1,1,spam\r\n"k""2",2,ham\r\n')
    assert events(path, label="y", id="key", positive="spam") == [
        {"id": "k1", "y": True, "x": {"b, c": 1.0}},
        {"id": 'k"2', "y": False, "x": {"b, c": 2.0}},
    ]


@pytest.mark.parametrize(
    ("content", "columns", "message"),
    [
        ("", {}, "no header line"),
        ("a,b\n1,x\n", {}, "line 2, column 'b': 'x' is not a finite number"),
        ("a,b\n1,\n", {}, "line 2, column 'b': the number is missing"),
        ("a,b\n1,2\n1,nan\n", {}, "line 3, column 'b': 'nan' is not a finite number"),
        ("a,b\n1,1e999\n", {}, "line 2, column 'b': '1e999' is not a finite number"),
        ("a,b\n1,1e20\n", {}, "line 2: feature 'b' must be a number below 1e15 in size, got 1e+20"),
        ("a,b\n1\n", {}, "line 2: 1 columns, but the header has 2"),
        ("a,b\n\n1,2,3\n", {}, "line 3: 3 columns, but the header has 2"),
        ("a,a\n1,2\n", {}, "line 1: column 'a' appears more than once"),
        ("a,b\n1,2\n", {"label": "y"}, "line 1: no column 'y'; there are 'a', 'b'"),
        ("a,b\n1,2\n", {"id": "y"}, "line 1: no column 'y'; there are 'a', 'b'"),
        ("a,b\nx,2\n ,2\n", {"id": "a"}, "line 3: no id in 'a'"),
        ("a,b\nx,2\nNaN,2\n", {"id": "a"}, "line 3: no id in 'a'"),
        ("a;b\n1;2\n", {"label": "b"}, "line 1: no column 'b'; there are 'a;b'; separate the columns by commas"),
        (b"a\n\xff\n", {}, "not UTF-8 text: byte 0xff cannot be read"),
        ("a\n" + "1" * 200_000, {}, "line 2, column 'a': '111"),
        ('a,b\n1,"2\n3,4\n', {}, "line 2: a quotation mark opens a cell that never ends"),
        ("a,b\n1,12_34\n", {}, "line 2, column 'b': '12_34' is not a finite number"),
        ("a,b\n1,\uff11\uff12\n", {}, "line 2, column 'b': '\uff11\uff12' is not a finite number"),
    ],
)
def test_bad_csv(tmp_path, content, columns, message):
    assert message in refusal(write(tmp_path, "d.csv", content), **columns)


# --- labels -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pair", [("1", "0"), ("+1", "-1"), ("1.0", "0.0"), ("true", "False"), (" 1", "-1.0")])
def test_usual_labels_need_no_help(tmp_path, pair):
    path = write(tmp_path, "d.csv", "a,y\n1,{}\n2,{}\n".format(*pair))
    assert [event["y"] for event in events(path, label="y")] == [True, False]


@pytest.mark.parametrize("third", ["2", "0", "x"])
def test_a_third_label_asks_for_the_positive_one(tmp_path, third):
    path = write(tmp_path, "d.csv", f"a,y\n1,1\n2,-1\n3,{third}\n")
    message = refusal(path, label="y")
    assert message.startswith(f"line 4, column 'y': label {third!r}")
    assert "--positive LABEL names the positive one" in message
    assert [event["y"] for event in events(path, label="y", positive="1.0", rest=True)] == [True, False, False]
    assert [event["y"] for event in events(path, label="y", positive=third, rest=True)] == [False, False, True]


def test_a_third_label_beside_the_positive_one_is_a_mistake_unless_asked_for(tmp_path):
    """It may be a misspelt one, which became a negative without a word."""
    path = write(tmp_path, "d.csv", "a,y\n1,ham\n2,spam\n3,hma\n4,ham\n")
    assert refusal(path, label="y", positive="spam") == (
        "line 4, column 'y': label 'hma' is a third one, beside 'spam' and 'ham'; correct it, or make every label but "
        "spam negative with --rest"
    )
    assert [event["y"] for event in events(path, label="y", positive="spam", rest=True)] == [False, True, False, False]


def test_a_positive_label_that_never_occurs_is_probably_misspelled(tmp_path):
    path = write(tmp_path, "d.csv", "a,y\n1,spam\n2,ham\n")
    assert "no record has the label 'spma'" in refusal(path, label="y", positive="spma", rest=True)


@pytest.mark.parametrize("other", ["Spam", "SPAM", "sp am", "spam\u200b", "\uff53pam"])
@pytest.mark.parametrize("rest", [True, False])
def test_another_way_to_write_the_positive_label_is_no_negative(tmp_path, other, rest):
    path = write(tmp_path, "d.csv", f"a,y\n1,spam\n2, spam \n3,{other}\n")
    message = refusal(path, label="y", positive="spam", rest=rest)
    assert message == f"line 4, column 'y': label {other!r} is almost 'spam'; write it in one way only"


BLANKS = ["", "  ", "NaN", "nan", "NA", "N/A", "null", "None", "<NA>", "#N/A"]


@pytest.mark.parametrize("positive", [None, "1"])
def test_a_blank_is_no_label_yet(tmp_path, positive):
    columns = {"label": "y", "positive": positive}
    csv = "a,y\n1,1\n2,0\n" + "".join(f"3,{blank}\n" for blank in BLANKS)
    lines = [{"a": 1, "y": y} for y in (1, 0, None, float("nan"), *BLANKS)]
    jsonl = "\n".join(map(json.dumps, lines)).encode()
    np.savez(tmp_path / "d.npz", X=np.eye(3), y=[1.0, 0.0, np.nan])
    for path, given in (
        (write(tmp_path, "d.csv", csv), columns),
        (write(tmp_path, "d.jsonl", jsonl), columns),
        (
            write(tmp_path, "x.jsonl", b'{"x": [1], "y": 1}\n{"x": [1], "y": 0}\n{"x": [1], "y": " "}'),
            columns | {"label": None},
        ),
        (write(tmp_path, "d.svm", "1 1:1\n0\nnan 1:1\n"), {"positive": positive}),
        (tmp_path / "d.npz", {"positive": positive}),
    ):
        found = [event["y"] for event in events(path, **given)]
        assert found == [True, False, *[None] * (len(found) - 2)], path
        assert len(found) > 2


def test_a_blank_is_counted_and_a_class_of_such_a_name_is_a_class(tmp_path):
    path = write(tmp_path, "d.csv", "a,y\n1,none\n2,NA\n3,\n4,some\n")
    columns = Columns(label="y", positive="some")
    list(read_events(path, columns=columns))
    assert columns.blanks == {"none": 1, "NA": 1, "": 1}
    assert [event["y"] for event in events(path, label="y", positive="none")] == [True, None, None, False]
    classes = Vocabulary(["none", "some", "more"])
    assert [event["y"] for event in events(path, label="y", classes=classes)] == ["none", None, None, "some"]


def test_examples_without_a_label_are_refused(tmp_path):
    path = write(tmp_path, "d.csv", "a,y\n1,1\n2,\n3,0\n4,NaN\n")
    with pytest.raises(FileError) as caught:
        list(read_examples(path, columns=Columns(label="y")))
    hint = "no label; remove the line, or fill its label in"
    assert caught.value.problems == (f"{path}, line 3: {hint}", f"{path}, line 5: {hint}")


@pytest.mark.parametrize("group", [None, "", float("nan")])
def test_examples_without_a_group_are_refused(tmp_path, group):
    """They were one group."""
    lines = [{"a": 1, "y": 1, "who": "ann"}, {"a": 1, "y": 0, "who": group}]
    path = write(tmp_path, "d.jsonl", "\n".join(map(json.dumps, lines)))
    with pytest.raises(FileError, match="line 2: no group in 'who'"):
        list(read_examples(path, columns=Columns(label="y", group="who")))


def test_labels_are_as_many_as_their_digits(tmp_path):
    """They were compared by their first six."""
    path = write(tmp_path, "d.csv", "a,y\n1,12345678\n2,12345679\n")
    assert [event["y"] for event in events(path, label="y", positive="12345679.0")] == [False, True]


@pytest.mark.parametrize("label", [[1], {"a": 1}, ["spam"]])
def test_a_list_is_no_label(tmp_path, label):
    path = write(tmp_path, "d.jsonl", json.dumps({"a": 1, "y": "spam"}) + "\n" + json.dumps({"a": 1, "y": label}))
    assert "line 2: a label must be a text, a number or a boolean" in refusal(path, label="y", positive="spam")


def test_names_of_the_configuration_are_labels(tmp_path):
    path = write(tmp_path, "d.csv", "a,y\n1,ham\n2,spam\n3,1\n4,0\n")
    names = {"spam": True, "ham": False}
    assert [event["y"] for event in events(path, label="y", names=names)] == [False, True, True, False]
    assert [event["y"] for event in events(path, label="y", names={"1": False, "spam": True, "ham": False})][2] is False
    path = write(tmp_path, "d.csv", "a,y\n1,ham\n2,Spam\n")
    assert refusal(path, label="y", names=names) == (
        "line 3, column 'y': label 'Spam' is not one of [label]'s 'spam'/'ham', 0/1, -1/+1 or true/false"
    )


# --- mistakes ---------------------------------------------------------------------------------------------------------


def test_a_file_tells_its_first_mistakes_and_how_many_there_are(tmp_path):
    path = write(tmp_path, "d.csv", "a,b,y\n1,x,1\n1,2,3\n1\n" + "1,2,0\n" * 5)
    assert [line.removeprefix(f"{path}, ").split(":")[0] for line in problems(path, label="y")] == [
        "line 2, column 'b'", "line 3, column 'y'", "line 4"
    ]  # fmt: skip
    path = write(tmp_path, "d.jsonl", '{"a": 1}\n{"a": "x"}\n{\n[1]\n' + "{\n" * 20)
    found = problems(path)
    assert (len(found), found[0].split(":")[0], found[-1]) == (11, f"{path}, line 2", "and 13 more")


def test_after_a_mistake_no_event_comes(tmp_path):
    reading = read_events(write(tmp_path, "d.csv", "a\n1\nx\n2\n"))
    assert json.loads(next(reading))["x"] == {"a": 1}
    with pytest.raises(FileError, match="line 3"):
        next(reading)


def problems(path, **columns):
    with pytest.raises(FileError) as caught:
        events(path, **columns)
    return caught.value.problems


@pytest.mark.parametrize(
    ("name", "content", "columns"),
    [
        ("d.csv", b"a,y\n1,1\n" + bytes(100_000), {}),
        ("d.svm", b"1 1:1\n" + bytes(100_000), {}),
        ("d.svm", b"1 " + b"z" * 100_000, {}),
        ("d.svm", b"1 1:" + b"1" * 100_000, {}),
        ("d.jsonl", b'{"a": 1}\n' + bytes(100_000), {}),
        ("d.jsonl", b'{"' + b"a" * 100_000 + b'": "x"}', {}),
        ("d.jsonl", b'{"' + b"a" * 100_000 + b'": 1, "' + b"a" * 100_000 + b'": 1}', {}),
        ("d.csv", b"a,y\n1," + b"z" * 100_000, {"label": "y"}),
        ("d.csv", b"a,y\n1,1\n2,0\n3," + b"z" * 100_000, {"label": "y", "positive": "1"}),
        ("d.csv", b"z" * 100_000 + b",b\n1,x", {}),
        ("d.csv", b",".join(b"%d" % i for i in range(50_000)), {"label": "y"}),
        ("d.csv", b"a," * 50_000, {}),
    ],
)  # fmt: skip
def test_a_message_is_short_whatever_a_file_holds(tmp_path, name, content, columns):
    message = refusal(write(tmp_path, name, content), **columns)
    assert len(message) < 500
    assert "\0" not in message


# --- JSON lines -------------------------------------------------------------------------------------------------------


def test_json_lines_of_events_pass_through(tmp_path):
    lines = '{"id": 1, "x": {"a": 2}, "y": -1, "w": 2.0, "ts": 7}\n\n{"x": [1, 2], "y": null}\n{"x": {}, "y": true}\n'
    assert events(write(tmp_path, "d.jsonl", lines)) == [
        {"id": 1, "x": {"a": 2}, "y": False, "w": 2.0, "ts": 7},
        {"id": "d:3", "x": [1, 2], "y": None},
        {"id": "d:4", "x": {}, "y": True},
    ]


def test_flat_json_lines(tmp_path):
    path = write(
        tmp_path, "d.ndjson", '{"a": 1, "x": 2, "class": "yes", "key": "k"}\n{"class": "no", "a": 1, "key": 2}\n'
    )
    assert events(path, label="class", id="key", positive="yes") == [
        {"id": "k", "y": True, "x": {"a": 1, "x": 2}},
        {"id": 2, "y": False, "x": {"a": 1}},
    ]


@pytest.mark.parametrize(
    ("line", "columns", "message"),
    [
        ("{", {}, "line 2: not a JSON object: Expecting property name enclosed in double quotes at character "),
        ("[1]", {}, "line 2: not a JSON object"),
        ('{"a": "x"}', {}, "line 2: feature 'a' must be a number"),
        ('{"x": {"a": NaN}}', {}, "line 2: NaN is not JSON"),
        ('{"x": {}, "id": null}', {}, "line 2: id must be"),
        ('{"x": {}, "y": 3}', {}, "line 2: label '3'"),
        ('{"b": 1}', {"label": "a"}, "line 2: no field 'a'"),
        ("[" * 100_000, {}, "line 2: maximum recursion"),
        ('{"a": 1, "a": 2}', {}, "line 2: 'a' appears more than once"),
        ('{"x": {"a": 1, "a": 2}}', {}, "line 2: 'a' appears more than once"),
    ],
)
def test_bad_json_lines(tmp_path, line, columns, message):
    path = write(tmp_path, "d.jsonl", f'{{"a": 1}}\n{line}\n')
    assert message in refusal(path, **columns)


# --- LIBSVM -----------------------------------------------------------------------------------------------------------


def test_libsvm(tmp_path):
    path = write(tmp_path, "d.svm", "+1 1:0.5 3:-2 # comment\n\n# only a comment\n-1\n-1 2:1e-3\n")
    assert events(path) == [
        {"id": "d:1", "y": True, "x": {"1": 0.5, "3": -2.0}},
        {"id": "d:4", "y": False, "x": {}},
        {"id": "d:5", "y": False, "x": {"2": 0.001}},
    ]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("+1 1:0.5 x", "'x' is not index:value"),
        ("+1 qid:3 1:1", "'qid:3' is not index:value"),
        ("+1 1:", "feature '1': the number is missing"),
        ("+1 1:inf", "feature '1': 'inf' is not a finite number"),
        ("+1 1:1 1:2", "a feature appears more than once"),
        ("+1 1:1 01:2", "a feature appears more than once"),
        ("+1 \uff12:1", "is not index:value"),
        ("+1 1:1_0", "feature '1': '1_0' is not a finite number"),
        ("1:1 2:2", "no label before '1:1'"),
        ("2 1:1", "label '2' is not one of two labels"),
    ],
)
def test_bad_libsvm(tmp_path, line, message):
    refused = refusal(write(tmp_path, "d.libsvm", f"+1 1:1\n{line}\n"))
    assert refused.startswith("line 2")
    assert message in refused


def test_columns_cannot_be_chosen_where_there_are_none(tmp_path):
    assert "only CSV and JSON lines" in refusal(write(tmp_path, "d.svm", "+1 1:1\n"), label="y")


# --- npz --------------------------------------------------------------------------------------------------------------


def test_dense_and_sparse_npz_are_the_same_events(tmp_path):
    X = np.array([[0.0, 1.5], [2.0, 0.0], [0.0, 0.0]], dtype=np.float32)
    y = np.array([1, -1, -1], dtype=np.int8)
    np.savez(tmp_path / "dense.npz", X=X, y=y, X_test=X, y_test=y)
    csr = sp.csr_matrix(X)
    np.savez(tmp_path / "sparse.npz", data=csr.data, indices=csr.indices, indptr=csr.indptr, shape=csr.shape, y=y)
    assert events(tmp_path / "dense.npz") == [
        {"id": "dense:1", "x": [0.0, 1.5], "y": True},
        {"id": "dense:2", "x": [2.0, 0.0], "y": False},
        {"id": "dense:3", "x": [0.0, 0.0], "y": False},
    ]
    assert [event["x"] for event in events(tmp_path / "sparse.npz")] == [{"1": 1.5}, {"0": 2.0}, {}]


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"Z": [1]}, "no array X, and no data, indices, indptr"),
        ({"X": [[1.0], [2.0]], "y": [1]}, "y has shape (1,), but there are 2 rows"),
        ({"X": [[1.0], [np.nan]]}, "row 2: NaN is not JSON"),
        ({"X": [["a"]]}, "X must hold numbers, and is <U1"),
        ({"X": [[1j]]}, "X must hold numbers, and is complex128"),
        ({"X": np.array([["2020-01-01"]], "M8[ns]")}, "X must hold numbers, and is datetime64[ns]"),
        ({"X": np.array([[1]], "m8[s]")}, "X must hold numbers, and is timedelta64[s]"),
        ({"X": np.zeros((2, 1), [("a", float)])}, "X must hold numbers, and is [('a', '<f8')]"),
        ({"X": [[b"a"]]}, "X must hold numbers, and is |S1"),
        ({"X": [[1.0]], "y": [1j]}, "y must hold numbers or texts, and is complex128"),
        ({"X": [[1.0]], "y": np.zeros(1, "M8[D]")}, "y must hold numbers or texts, and is datetime64[D]"),
        ({"data": [1j], "indices": [0], "indptr": [0, 1]}, "data must hold numbers, and is complex128"),
        ({"data": [1.0, 2.0], "indices": [0, 0], "indptr": [0, 2]}, "row 1: a column appears more than once"),
        ({"data": [1.0], "indices": [-1], "indptr": [0, 1]}, "not those of a CSR matrix"),
        ({"data": [1.0], "indices": [3], "indptr": [0, 1], "shape": [1, 3]}, "not those of a CSR matrix"),
        ({"data": [1.0], "indices": [0], "indptr": [0, 1], "shape": [3, 1]}, "not those of a CSR matrix"),
        ({"X": [1.0, 2.0]}, "X has shape (2,); 2 dimensions needed"),
        ({"X": 3.0}, "X has shape (); 2 dimensions needed"),
        ({"X": [[1.0]], "y": [7]}, "row 1: label '7'"),
        (
            {"X": np.array([[1, None]])},
            "not an npz file of plain arrays: X holds objects of Python; save it as numbers",
        ),
        (
            {"X": [[1.0]], "y": np.array(["a"], object)},
            "y holds objects of Python; save it as texts, as in y.astype(str)",
        ),
        ({"data": [1.0], "indices": [0, 1], "indptr": [0, 2]}, "not those of a CSR matrix"),
        ({"data": [1.0, 1.0], "indices": [0, 1], "indptr": [0, 3, 2]}, "not those of a CSR matrix"),
        ({"data": [1.0], "indices": [0.5], "indptr": [0, 1]}, "not those of a CSR matrix"),
        ({"data": [1.0], "indices": [0], "indptr": np.zeros(0, int)}, "not those of a CSR matrix"),
    ],
)
def test_bad_npz(tmp_path, arrays, message):
    np.savez(tmp_path / "d.npz", **{name: np.asarray(array) for name, array in arrays.items()})
    assert message in refusal(tmp_path / "d.npz")


@pytest.mark.parametrize("kind", ["csc", "coo", "bsr", "dia"])
def test_only_a_csr_matrix_is_read(tmp_path, kind):
    """A CSC matrix has arrays of the same names, and was read as its transpose."""
    matrix = sp.random(6, 4, 0.5, format="csr", random_state=0)
    sp.save_npz(tmp_path / "csr.npz", matrix)
    assert len(events(tmp_path / "csr.npz")) == 6
    sp.save_npz(tmp_path / f"{kind}.npz", matrix.asformat(kind))
    assert refusal(tmp_path / f"{kind}.npz") == f"'format' says {kind!r}; save the matrix as CSR, by matrix.tocsr()"


@pytest.mark.parametrize("dtype", [bool, np.float16, np.longdouble, np.uint8, np.int64])
def test_numbers_of_every_kind_are_features(tmp_path, dtype):
    np.savez(tmp_path / "d.npz", X=np.array([[1, 0]], dtype), y=np.array([1], dtype))
    assert events(tmp_path / "d.npz") == [{"id": "d:1", "x": [1, 0], "y": True}]


@pytest.mark.parametrize("dtype", ["U", "S"])
def test_labels_of_arrays_may_be_texts(tmp_path, dtype):
    np.savez(tmp_path / "d.npz", X=np.eye(3), y=np.array(["spam", "ham", ""], dtype))
    assert [event["y"] for event in events(tmp_path / "d.npz", positive="spam")] == [True, False, None]


def test_something_else_under_the_name_npz(tmp_path):
    assert "not an npz file" in refusal(write(tmp_path, "d.npz", "hello"))


@pytest.mark.parametrize("shape", ["(500000000, 1)", "(3, 10)", "(-3, 1)", "(1, 1)", "(2, 'x')", "()"])
def test_an_npz_whose_shape_does_not_fit_its_bytes_is_refused_before_there_is_memory_for_it(tmp_path, shape):
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}}}".ljust(117).encode() + b"\n"
    with zipfile.ZipFile(tmp_path / "d.npz", "w") as file:
        file.writestr("X.npy", b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(24))
    tracemalloc.start()
    try:
        assert "not an npz file of plain arrays" in refusal(tmp_path / "d.npz")
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_an_npz_that_is_mostly_air_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(arrays, "_SMALL", 10_000)
    np.savez_compressed(tmp_path / "d.npz", X=np.zeros((1000, 1000)))
    assert "X is compressed from 8000128 to" in refusal(tmp_path / "d.npz")


def test_a_damaged_npz_is_refused(tmp_path):
    np.savez_compressed(tmp_path / "d.npz", X=np.random.default_rng(0).normal(size=(100, 3)))
    data = bytearray((tmp_path / "d.npz").read_bytes())
    for place in (3, 60, 500, len(data) - 30):
        (tmp_path / "d.npz").write_bytes(data[:place] + bytes([data[place] ^ 255]) + data[place + 1 :])
        assert "not an npz file of plain arrays" in refusal(tmp_path / "d.npz")


# --- formats ----------------------------------------------------------------------------------------------------------


def test_the_format_can_be_told(tmp_path):
    path = write(tmp_path, "train.txt", "+1 1:1\n")
    assert "'.txt' belongs to no format; name one of csv, jsonl, libsvm, npz" in refusal(path)
    assert len(events(path, "libsvm")) == 1


@pytest.mark.parametrize(
    ("name", "text"), [("d.svm", "+1 1:1\n-1\n"), ("d.jsonl", '{"a": 1, "y": 1}'), ("d.csv", "a,y\n1,1")]
)
def test_a_byte_order_mark_is_skipped(tmp_path, name, text):
    columns = {} if name == "d.svm" else {"label": "y"}
    path = write(tmp_path, name, text)
    expected = events(path, **columns)
    path.write_text(text, "utf-8-sig")
    assert events(path, **columns) == expected


def test_a_text_may_be_as_long_as_a_record(tmp_path):
    path = write(tmp_path, "d.csv", f"a,text\n1,{'z' * 140_000}\n")
    assert len(events(path, shown={"text": "text"})[0]["text"]) == 140_000


def test_a_missing_file_is_the_system_s_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        events(tmp_path / "none.csv")


@pytest.mark.long
def test_long_files_are_read_in_constant_memory(tmp_path):
    path = write(tmp_path, "d.svm", "+1 1:0.5 2:0.25\n" * 20_000)
    tracemalloc.start()
    try:
        for _ in read_events(path):
            pass
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "libsvm"])
def test_a_file_without_lines_is_refused_before_it_fills_the_memory(tmp_path, monkeypatch, suffix):
    monkeypatch.setattr(text_files, "_MAX_LINE", 1000)
    path = tmp_path / f"a.{suffix}"
    good = {"csv": "a,b\n1,2\n", "jsonl": '{"a": 1}\n', "libsvm": "1 1:2\n"}[suffix]
    path.write_text(good + "1" * 2000)
    events = read_events(path)
    next(events)
    with pytest.raises(
        FileError, match=rf"a.{suffix}, line {good.count(chr(10)) + 1}: the line is longer than 1000 char"
    ):
        list(events)


def test_a_wide_header_takes_no_quadratic_time(tmp_path):
    """Its names were compared each with all others: minutes."""
    path = tmp_path / "a.csv"
    path.write_text(",".join(f"c{i}" for i in range(60_000)) + "\n" + ",".join(["1"] * 60_000) + "\n")
    (event,) = read_events(path)
    assert len(json.loads(event)["x"]) == 60_000
