"""C: compiled by the machine's compiler, it says what the description says."""

import numpy as np
import pytest
from described import Twin
from exported import MODELS, answers_of, assert_alike, engine_rounding, model_of, rows_of
from programs import Compiled

from streamsvm.export import to_c, to_json


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("options", [(), ("-DSTREAMSVM_FLOAT", "-O3")], ids=["double", "float"])
def test_c_decides_as_the_description_says(tmp_path, name, options):
    rows, _ = rows_of(name, 200)
    text = to_json(model_of(name))
    twin = Twin(text)
    found = Compiled(to_c(model_of(name)), tmp_path, *options).answers(twin.table(rows), twin.told["labels"])
    assert_alike(found, twin.answers(rows), 1e-5 if options else 1e-9)
    assert_alike(found, answers_of(name, 200), engine_rounding(name))


def test_what_is_no_number_is_refused(tmp_path):
    model = Compiled(to_c(model_of("scaled")), tmp_path)
    for wrong in (np.nan, np.inf, -np.inf):
        x = np.zeros(5)
        x[3] = wrong
        assert model.ask("model_predict", x)[0] == -1
        assert model.ask("model_values", x, 1)[0] == -1
        assert model.ask("model_probabilities", x, 2)[0] == -1


def test_a_name_must_be_one(tmp_path):
    with pytest.raises(ValueError, match="name='a b' must begin"):
        to_c(model_of("scaled"), "a b")
