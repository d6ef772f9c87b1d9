"""Compilation ahead of the first use."""

import subprocess
import sys

SCRIPT = """
import numpy as np
import scipy.sparse as sp
from streamsvm import LASVM
from streamsvm.core.compiling._jit import _CodeCache
from streamsvm.validation import cross_validate, grid_search, leave_one_out
from streamsvm.validation.compilation import compile_ahead

needed, load = [], _CodeCache.load_overload

def noted(self, signature, context):  # called before code is compiled, and also if it lies on disk
    needed.append(f"{self._py_func.__module__}.{self._py_func.__name__}")
    return load(self, signature, context)

_CodeCache.load_overload = noted
compile_ahead(LASVM)
assert needed
needed.clear()
X = np.random.default_rng(1).normal(size=(1500, 5))
for n in (300, 1500):
    for y in (X[:n, 0] + X[:n, 1] > 0, X[:n, 0] * X[:n, 1] > 0):
        for examples in (X[:n], sp.csr_matrix(X[:n])):
            cross_validate(LASVM(gamma=0.3), examples, y, k=5)
            grid_search(LASVM(), examples, y, Cs=[0.1, 10.0, 1000.0], gammas=[0.01, 0.3], k=3)
            if n == 300:
                leave_one_out(LASVM(gamma=0.3), examples, y)
print(*needed)
"""


def test_after_it_cross_validation_compiles_nothing():
    """Neither with few nor with many examples, easy or hard, dense or as the matrix without zeros that a file gives."""
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == []
