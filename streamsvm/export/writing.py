"""What the targets share: filling a template, names in a program, and arrays as text."""

import math
import re
from collections.abc import Hashable, Iterable, Mapping
from importlib.resources import files
from typing import Any

import numpy as np

from streamsvm._version import __version__
from streamsvm.export.description import Description, text_of

LOG2_E = 1.0 / math.log(2.0)


def filled(template: str, values: Mapping[str, Any] | None = None) -> str:
    """A template of `templates` with each ``@word@`` replaced; what is put in is not looked at again."""
    text = (files("streamsvm.export") / "templates" / template).read_text(encoding="utf-8")
    own = {"version": __version__, **(values or {})}
    return re.sub(r"@(\w+)@", lambda found: str(own[found[1]]), text)


def require_identifier(name: str, what: str = r"[A-Za-z][A-Za-z0-9_]*") -> None:
    """Raise a ValueError unless this can name a function or a class."""
    if not isinstance(name, str) or not re.fullmatch(what, name, re.ASCII):
        raise ValueError(
            f"name={name!r} must begin with a letter and have letters, digits and _ only: it names code that is written"
        )


def texts_of(names: Iterable[Hashable]) -> list[str]:
    """Names or labels as texts; a ValueError for one that other programs cannot hold."""
    texts = [text_of(name) for name in names]
    for text in texts:
        if "\0" in text or any("\ud800" <= sign <= "\udfff" for sign in text):
            raise ValueError(f"the name {text!r} has a sign that is no character; rename it before the model learns")
    return texts


def rates_of(found: Description) -> np.ndarray:
    """The factor in each member's kernel: gamma, or for RBF that of the squared distance in an exponent of 2."""
    return -LOG2_E * found.gamma if found.kernel == "rbf" else found.gamma


def squared_norms(found: Description) -> np.ndarray:
    """Squared norms of the members, (M,)."""
    return np.asarray(found.members.multiply(found.members).sum(axis=1)).ravel()


def is_sparse(found: Description) -> bool:
    """Whether members are written as lists of their features: most of these are 0."""
    n, d = found.members.shape
    return d > 32 and found.members.nnz < n * d / 4
