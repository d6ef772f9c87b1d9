"""JavaScript: run by Node, it says what the description says."""

import pytest
from described import Twin
from exported import MODELS, answers_of, assert_alike, engine_rounding, model_of, rows_of
from programs import run

from streamsvm.export import to_javascript, to_json


@pytest.mark.parametrize("name", MODELS)
def test_javascript_decides_as_the_description_says(tmp_path, name):
    rows, _ = rows_of(name, 200)
    text = to_json(model_of(name))
    twin = Twin(text)
    _, _, found = run(to_javascript(model_of(name)), twin.table(rows[:100]).tolist() + rows[100:], tmp_path)
    assert_alike(found, twin.answers(rows), 1e-9)
    assert_alike(found, answers_of(name, 200), engine_rounding(name))


def test_unknown_features_count_as_in_the_model(tmp_path):
    model, strangers = model_of("scaled"), ({"stranger": 0.7}, {"__proto__": 9.0, "constructor": 0.1})
    rows = [x | stranger for x, stranger in zip(rows_of("scaled", 2)[0], strangers, strict=True)]
    _, _, (values, _, _) = run(to_javascript(model), rows, tmp_path)
    expected = [model.decision_function_one(x) for x in rows]
    assert [value for (value,) in values] == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize(
    ("row", "said"), [({"width": "1"}, 'x["width"] is 1'), ({"width": None}, "finite"), ([1.0, 2.0], "must have 5")]
)
def test_what_is_no_number_is_refused(tmp_path, row, said):
    with pytest.raises(AssertionError, match=said.replace("[", r"\[")):
        run(to_javascript(model_of("scaled")), [row], tmp_path)
