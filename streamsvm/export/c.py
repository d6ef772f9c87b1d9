"""A model as one C99 file."""

from typing import Any

import numpy as np

from streamsvm.export.description import Description, describe
from streamsvm.export.fields import require_numbers
from streamsvm.export.writing import filled, is_sparse, rates_of, require_identifier, squared_norms, texts_of

BLOCK = 32  # as in the template
PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 _-+.,:;=()[]~#/")


def to_c(model: Any, name: str = "model") -> str:
    """A model as the text of one C99 file, which needs no other file.

    The head of the file says how to call it.

    Parameters
    ----------
    model
        The model; see `describe`, which also says what is raised.
    name
        What the names of its functions begin with.

    Examples
    --------
    >>> from streamsvm import LASVM
    >>> model = LASVM(gamma=0.5)
    >>> model.learn_many([{"a": 0.0}, {"a": 1.0}], [False, True])
    >>> "int model_predict(const double *x)" in to_c(model)
    True
    """
    require_identifier(name)
    found = describe(model)
    require_numbers(found.records, "C")
    n_blocks = -(-len(found.gamma) // BLOCK)
    sparse = is_sparse(found)
    return filled(
        "scorer.c",
        {
            "name": name,
            "kernel": found.kernel.upper(),
            "degree": found.degree,
            "decision": found.decision.upper().replace("-", "_"),
            "n_features": len(found.features),
            "n_machines": len(found.bias),
            "n_labels": len(found.labels),
            "n_blocks": n_blocks,
            "sparse": int(sparse),
            "features": _strings(found.features),
            "labels": _strings(found.labels),
            "coef0": found.coef0,
            "limit": found.limit if np.isfinite(found.limit) else "HUGE_VAL",
            "threshold": found.threshold,
            **{name: _numbers(getattr(found, name)) for name in ("shift", "factor", "missing", "bias", "slopes")},
            **_guarantee(found),
            "norms": _numbers(_padded(squared_norms(found))),
            "rates": _numbers(_padded(rates_of(found))),
            "coefficients": _numbers(_blocks(found.coefficients)),
            **_features(found, sparse),
        },
    )


def _guarantee(found: Description) -> dict[str, Any]:
    """The thresholds of the labels, and the correction of probabilities, if there are any."""
    if found.guarantee is None:
        return {"decides": 0, "corrects": 0, "thresholds": "", "intercept": 0.0, "slope": 1.0}
    intercept, slope = found.guarantee.correction or (0.0, 1.0)
    return {
        "decides": 1,
        "corrects": int(found.guarantee.correction is not None),
        "thresholds": _numbers(np.array(found.guarantee.thresholds)),
        "intercept": intercept,
        "slope": slope,
    }


def _features(found: Description, sparse: bool) -> dict[str, Any]:
    """The features of the members, in one of two forms."""
    n_first = (len(found.features) - 1) % 4 + 1
    terms = " + ".join(f"z[{j}] * S[{j}][i]" for j in range(n_first))
    values = dict.fromkeys(("starts", "owners", "entries", "members"), "") | {"n_first": n_first, "first_terms": terms}
    if not sparse:
        return values | {"members": _numbers(_blocks(found.members.toarray().T))}
    by_feature = found.members.tocsc()
    return values | {
        "starts": _numbers(by_feature.indptr),
        "owners": _numbers(by_feature.indices),
        "entries": _numbers(by_feature.data),
    }


def _padded(values: np.ndarray) -> np.ndarray:
    """Values of the members, (..., M), with zeros up to a whole block."""
    return np.pad(values, [(0, 0)] * (values.ndim - 1) + [(0, -values.shape[-1] % BLOCK)])


def _blocks(values: np.ndarray) -> np.ndarray:
    """Values of the members, (n, M), as (blocks, n, BLOCK)."""
    padded = _padded(values)
    return padded.reshape(len(padded), -1, BLOCK).swapaxes(0, 1)


def _numbers(values: np.ndarray) -> str:
    """An array of any dimension as what stands between the braces of an initialiser."""
    if values.ndim > 1:
        return ",\n".join(f"{{{_numbers(part)}}}" for part in values)
    texts = list(map(repr, values.tolist()))
    return ",\n".join(", ".join(texts[first : first + 8]) for first in range(0, len(texts), 8))


def _strings(names: list) -> str:
    """String literals of UTF-8 in which no sign has a meaning: all but a few are written as octal numbers."""
    quoted = []
    for text in texts_of(names):
        signs = (chr(byte) if byte in PLAIN else f"\\{byte:03o}" for byte in text.encode())
        quoted.append(f'"{"".join(signs)}"')
    return ", ".join(quoted)
