"""Exported programs, compiled and run: in C, in JavaScript and in Java; skipped where there is no compiler."""

import ctypes
import json
import shutil
import subprocess

import numpy as np
import pytest

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


ASK = """
import { readFileSync } from "node:fs";
import * as model from "./model.mjs";
const said = (x) => [model.values(x), model.probabilities(x), model.predict(x)];
console.log(JSON.stringify([model.features, model.labels, JSON.parse(readFileSync("rows.json")).map(said)]));
"""


def run(text, rows, folder):
    """The features, the labels, and what the module says of rows, which are objects or arrays."""
    node = shutil.which("node") or pytest.skip("no Node")
    (folder / "model.mjs").write_text(text, encoding="utf-8")
    (folder / "rows.json").write_text(json.dumps(rows))
    (folder / "ask.mjs").write_text(ASK)
    done = subprocess.run([node, "ask.mjs"], cwd=folder, capture_output=True, text=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    features, labels, answers = json.loads(done.stdout)
    values, p, said = zip(*answers, strict=True) if answers else ((), (), ())
    return features, labels, (values, p, list(said))


def java(folder, *command):
    found = shutil.which(command[0]) or pytest.skip(f"no {command[0]}")
    done = subprocess.run([found, *command[1:]], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout
