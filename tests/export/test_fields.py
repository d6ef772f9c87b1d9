"""Raw records: JavaScript makes the numbers of `Records`; other targets say what they cannot."""

import json
import shutil
import subprocess

import numpy as np
import pytest
from programs import java, run

from streamsvm import LASVM
from streamsvm.export import to_c, to_java, to_javascript, to_json, to_onnx
from streamsvm.features import Records

WORDS = [
    "late delivery, twice",
    "ÄRGER mit der Lieferung 24",
    "all good so far",
    "the box was open again",
    "x² and 3 more",
]
ODD = [
    {},
    {"age": "n/a", "city": "", "seen": "yesterday", "note": None, "tags": []},
    {"age": " 1e3 ", "city": 5.0, "seen": "2024-02-29", "note": "", "spot": {"lat": "12_3"}},
    {"age": "1,234.5", "city": True, "seen": "2023-02-29", "tags": [1, 2, 3]},
    {"age": "0,5", "city": 0.00001, "seen": "2024-12-31 23:59:59.123456789+05:30", "when": -5e9},
    {"age": True, "city": "x" * 70, "seen": "2024/07/01T00:00Z", "when": 1e17, "stranger": 3},
    {"age": 1e30, "city": ["a", "b"], "seen": 3, "tags": [True, False], "note": ["two", "parts"]},
    {"age": "infinity", "city": " spaced ", "seen": "2024-06-30T12:00:00-0330", "spot": {"lat": False}, "note": "?!"},
    {"city": "漢字 😀", "note": "漢字 😀 ÉTÉ _x9_", "age": "-.5"},
]


def raw(n, seed):
    rng = np.random.default_rng(seed)
    rows = []
    for i in range(n):
        rows.append(
            {
                "age": float(rng.integers(18, 80)) if rng.random() < 0.9 else None,
                "city": f"city {rng.integers(0, 300)}",
                "seen": f"2024-{rng.integers(1, 13):02}-{rng.integers(1, 29):02}T{rng.integers(0, 24):02}:30:00",
                "when": float(rng.integers(1_600_000_000, 1_700_000_000)),
                "note": f"{rng.choice(WORDS)} {i} {rng.choice(WORDS)}",
                "tags": rng.random(2).round(3).tolist(),
                "spot": {"lat": float(rng.normal())},
                "number": f"id-{i:05}",
            }
            | ({"coupon": float(rng.integers(1, 9)), "shop": "b"} if i % 5 == 0 else {})  # rare ones
        )
    return rows


@pytest.fixture(scope="module", params=[False, True], ids=["plain", "indicators"])
def piped(request):
    rows = raw(500, 0)
    records = Records({"when": "epoch_s"}, indicators=request.param, thousands=",")
    records.learn_many(rows)
    model = LASVM()
    model.learn_many(records.transform_many(rows), [(x["age"] or 40.0) + 30.0 * x["spot"]["lat"] > 45.0 for x in rows])
    return records | model


def test_javascript_makes_the_same_numbers(piped, tmp_path):
    records, model = piped.steps.values()
    rows = raw(60, 1) + ODD
    text = to_javascript(piped)
    _, _, (values, _, labels) = run(text, rows, tmp_path)
    expected = records.transform_many(rows)
    np.testing.assert_allclose(np.ravel(values), model.decision_function_many(expected), atol=2e-5)
    assert labels == model.predict_many(expected).tolist()
    (tmp_path / "ask.mjs").write_text(
        'import { readFileSync } from "node:fs"; import { numbersOf } from "./model.mjs";'
        'console.log(JSON.stringify(JSON.parse(readFileSync("rows.json")).map((x) => [...numbersOf(x)])));'
    )
    told = subprocess.run([shutil.which("node"), "ask.mjs"], cwd=tmp_path, capture_output=True, check=True).stdout
    for row, own, right in zip(rows, json.loads(told), expected, strict=True):
        assert dict(own) == pytest.approx(right, rel=1e-9, abs=1e-9), row


def java_of(value):
    """A value of a record as a Java expression."""
    if isinstance(value, dict):
        return f"map({', '.join(java_of(part) for item in value.items() for part in item)})"
    if isinstance(value, list):
        return f"java.util.Arrays.asList({', '.join(map(java_of, value))})"
    if isinstance(value, str):
        units = value.encode("utf-16-be")
        return '"' + "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2)) + '"'
    return {None: "null", True: "true", False: "false"}[value] if value in (None, True, False) else f"{float(value)!r}"


ASK = """
public class Ask {
    static java.util.Map<String, Object> map(Object... items) {
        java.util.Map<String, Object> made = new java.util.HashMap<>();
        for (int i = 0; i < items.length; i += 2) made.put((String) items[i], items[i + 1]);
        return made;
    }

    static void ask(java.util.Map<String, Object> row) {
        System.out.println(Model.values(row)[0] + " " + Model.predict(row));
    }

    public static void main(String[] none) {
        %s
    }
}
"""


def test_java_makes_the_same_numbers(piped, tmp_path):
    records, model = piped.steps.values()
    rows = raw(20, 1) + [{name: 1.5 if v == 3 and v is not True else v for name, v in x.items()} for x in ODD]
    (tmp_path / "Ask.java").write_text(ASK % "\n".join(f"ask({java_of(row)});" for row in rows))
    (tmp_path / "Model.java").write_text(to_java(piped))
    java(tmp_path, "javac", "-Xlint:all", "-Werror", "Ask.java", "Model.java")
    expected = records.transform_many(rows)
    said = [line.split() for line in java(tmp_path, "java", "Ask").splitlines()]
    right = model.decision_function_many(expected)
    for row, (value, label), f in zip(rows, said, right, strict=True):
        assert float(value) == pytest.approx(f, abs=2e-5), row
        assert label == str(f > 0).lower()


def test_json_has_what_makes_numbers(piped):
    told = json.loads(to_json(piped))["records"]
    kinds = {field["name"]: field["kind"] for field in told["fields"]}
    assert kinds == {
        "age": "number",
        "city": "category",
        "seen": "time",
        "when": "epoch_s",
        "note": "text",
        "tags": "list",
        "spot.lat": "number",
        "coupon": "number",
        "shop": "category",
    }
    assert [field["name"] for field in told["fields"] if field["is_rare"]] == ["coupon", "shop"]


@pytest.mark.parametrize("write", [to_json, to_javascript, lambda model: to_java(model, "Model")])
def test_a_field_with_an_embedder_is_refused(write):
    class Length:
        name, size = "length", 1

        def embed_one(self, text):
            return [float(len(text))]

    model = Records(embed={"note": Length()}) | LASVM()
    for t in range(20):
        model.learn_one({"note": "ab" * t}, t % 2 == 0)
    with pytest.raises(ValueError, match="field 'note' has an embedder, which no other program has"):
        write(model)


@pytest.mark.parametrize(("write", "target"), [(to_c, "C"), (to_onnx, "ONNX")])
def test_other_targets_name_a_field_that_they_cannot_take(piped, write, target):
    with pytest.raises(ValueError, match=f"{target} takes numbers, no raw records, and field 'city' is a category"):
        write(piped)
