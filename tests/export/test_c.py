"""C: compiled by the machine's compiler, it says what the description says."""

import ctypes
import shutil
import subprocess

import numpy as np
import pytest
from described import Twin
from exported import MODELS, answers_of, assert_alike, engine_rounding, model_of, rows_of

from streamsvm.export import to_c, to_json

DOUBLES = ctypes.POINTER(ctypes.c_double)


class Compiled:
    """The functions of a file, compiled without warnings."""

    def __init__(self, text, folder, *options):
        compiler = shutil.which("cc") or pytest.skip("no C compiler")
        (folder / "model.c").write_text(text, encoding="utf-8")
        strict = ("-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic")
        command = [compiler, *strict, "-O2", "-fPIC", "-shared", *options, "model.c", "-o", "model.so", "-lm"]
        subprocess.run(command, cwd=folder, check=True)
        self.library = ctypes.CDLL(str(folder / "model.so"))
        self.n_values, self.n_labels = (self.number(f"model_n_{what}") for what in ("values", "labels"))

    def number(self, name):
        return ctypes.c_int.in_dll(self.library, name).value

    def texts(self, name, n):
        return [text.decode() for text in (ctypes.c_char_p * n).in_dll(self.library, name)]

    def ask(self, name, x, n=0):
        """What a function returns, and the n numbers that it writes."""
        out = np.empty(n)
        given = [np.ascontiguousarray(x, np.float64).ctypes.data_as(DOUBLES)]
        code = getattr(self.library, name)(*given, *([out.ctypes.data_as(DOUBLES)] if n else []))
        return code, out

    def answers(self, X, labels):
        values = np.array([self.ask("model_values", x, self.n_values)[1] for x in X])
        p = np.array([self.ask("model_probabilities", x, self.n_labels)[1] for x in X])
        return values, p, [labels[self.ask("model_predict", x)[0]] for x in X]


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
