"""Arrays of an npz file as rows of features: a matrix X, or a CSR matrix as `scipy.sparse.save_npz` writes it."""

import math
import zipfile
import zlib
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from ..runtime.folders import FileError

_MOST_INFLATED, _SMALL = 100, 1 << 28  # an array: times its compressed bytes, plus these bytes
_SPARSE = ("data", "indices", "indptr")
_KINDS = {"y": "biufUS"}  # of numpy's types: labels may be texts
_NUMBERS = "biuf"

Arrays = dict[str, np.ndarray]


def read_arrays(path: Path) -> tuple[Iterator[Any], list[Any] | None]:
    """The rows of a file, as lists or, of a sparse matrix, as features by column; and the labels, if it has any.

    Raises
    ------
    FileError
        If the file does not hold arrays of numbers that fit together.
    """
    arrays = _load(path)
    rows = (row.tolist() for row in arrays["X"]) if "X" in arrays else _csr_rows(path, arrays)
    return rows, arrays["y"].tolist() if "y" in arrays else None


def _load(path: Path) -> Arrays:
    try:
        with zipfile.ZipFile(path) as file:
            present = set(file.namelist())
            wanted = ("X", "y") if "X.npy" in present else (*_SPARSE, "format", "shape", "y")
            arrays = {name: _load_array(file, name) for name in wanted if f"{name}.npy" in present}
    except (EOFError, RuntimeError, TypeError, ValueError, zipfile.BadZipFile, zlib.error) as error:
        raise FileError(f"{path}: not an npz file of plain arrays: {error}") from None
    if "X" not in arrays:
        _require_csr(path, arrays)
    for name in ("X", *_SPARSE, "y"):
        if name in arrays:
            arrays[name] = _plain(path, name, arrays[name])
    n_rows = len(arrays["X"]) if "X" in arrays else len(arrays["indptr"]) - 1
    if "y" in arrays and arrays["y"].shape != (n_rows,):
        raise FileError(f"{path}: y has shape {arrays['y'].shape}, but there are {n_rows} rows")
    return arrays


def _require_csr(path: Path, arrays: Arrays) -> None:
    """Refuse a sparse matrix of another kind, which may have arrays of the same names."""
    kind = arrays["format"].astype(str).item() if arrays.get("format", np.zeros(0)).size == 1 else "csr"
    if kind != "csr":
        raise FileError(f"{path}: 'format' says {kind!r}; save the matrix as CSR, by matrix.tocsr()")
    missing = [name for name in _SPARSE if name not in arrays]
    if missing:
        raise FileError(f"{path}: no array X, and no {', '.join(missing)} of a CSR matrix")


def _plain(path: Path, name: str, array: np.ndarray) -> np.ndarray:
    """An array whose items are numbers, or texts, of Python."""
    if array.ndim != (2 if name == "X" else 1):
        raise FileError(f"{path}: {name} has shape {array.shape}; {'2 dimensions' if name == 'X' else '1'} needed")
    kind, wanted = array.dtype.kind, _KINDS.get(name, _NUMBERS)
    if kind not in wanted:
        allowed = "numbers" if wanted == _NUMBERS else "numbers or texts"
        raise FileError(f"{path}: {name} must hold {allowed}, and is {array.dtype}")
    if kind == "S":
        return np.char.decode(array, "utf-8", "backslashreplace")
    if kind == "b" and name != "y":
        return array.astype(np.int8)
    return array.astype(np.float64) if array.dtype == np.longdouble else array


def _load_array(file: zipfile.ZipFile, name: str) -> np.ndarray:
    """An array of the archive.  Its shape is compared with its bytes before memory is taken for it."""
    info = file.getinfo(f"{name}.npy")
    if info.file_size > _MOST_INFLATED * info.compress_size + _SMALL:
        raise ValueError(
            f"{name} is compressed from {info.file_size} to {info.compress_size} bytes; do not compress it"
        )
    with file.open(info) as member:
        major, _ = np.lib.format.read_magic(member)
        read_header = np.lib.format.read_array_header_1_0 if major == 1 else np.lib.format.read_array_header_2_0
        shape, _, dtype = read_header(member)
        n_bytes, there = math.prod(shape) * dtype.itemsize, info.file_size - member.tell()
    if dtype.hasobject:
        plain = f"texts, as in {name}.astype(str)" if name == "y" else f"numbers, as in {name}.astype(float)"
        raise ValueError(f"{name} holds objects of Python; save it as {plain}")
    if n_bytes != there or min(shape, default=0) < 0:
        raise ValueError(f"{name} is {dtype} of shape {shape}: this takes {n_bytes} bytes, but the file has {there}")
    with file.open(info) as member:
        return np.asarray(np.lib.format.read_array(member, allow_pickle=False))


def _csr_rows(path: Path, arrays: Arrays) -> Iterator[dict[str, float]]:
    data, indices, indptr = (arrays[name] for name in _SPARSE)
    whole = indices.dtype.kind in "iu" and indptr.dtype.kind in "iu" and len(indptr) > 0
    if (
        not whole
        or len(data) != len(indices)
        or indptr[0] != 0
        or indptr[-1] != len(data)
        or (indptr[1:] < indptr[:-1]).any()
        or not _fits(arrays)
    ):
        raise FileError(f"{path}: data, indices and indptr are not those of a CSR matrix")
    for number, (start, stop) in enumerate(pairwise(indptr.tolist()), 1):
        x = dict(zip(map(str, indices[start:stop].tolist()), data[start:stop].tolist(), strict=True))
        if len(x) != stop - start:
            raise FileError(f"{path}, row {number}: a column appears more than once; matrix.sum_duplicates() adds them")
        yield x


def _fits(arrays: Arrays) -> bool:
    """Whether rows and columns are those of the matrix's shape, if the file tells it."""
    indices, shape = arrays["indices"], arrays.get("shape", np.zeros(0, int))
    if shape.shape == (2,) and shape.dtype.kind in "iu":
        n_rows, n_columns = shape.tolist()
        if n_rows != len(arrays["indptr"]) - 1 or (indices >= n_columns).any():
            return False
    return not (indices < 0).any()
