"""The description as JSON: what it says of a model is what the model does."""

import pytest
from described import Twin
from exported import MODELS, answers_of, assert_alike, engine_rounding, model_of, rows_of

from streamsvm.export import to_json


@pytest.mark.parametrize("name", MODELS)
def test_the_text_says_what_the_model_does(name):
    rows, _ = rows_of(name, 200)
    assert_alike(Twin(to_json(model_of(name))).answers(rows), answers_of(name, 200), engine_rounding(name))
