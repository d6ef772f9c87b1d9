"""A grid with more axes, or with a finer grid after it: several searches of C and gamma, as one outcome."""

import copy
import itertools
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from streamsvm.batch import SmoothSVM
from streamsvm.core.arguments import require_count, require_positive
from streamsvm.core.kernels import about
from streamsvm.validation.grids.grid import Outcome, best_of, has_scores
from streamsvm.validation.held_out.problem import is_one_vs_one

SearchOf = Callable[..., Any]  # of a model, with Cs, gammas and refit


def widened(
    search: SearchOf, model: Any, Cs: Any, gammas: Any, degrees: Any, coef0s: Any, fine: int, refit: bool
) -> Any:
    """The search over all axes; with `fine`, that of the finer grid around its best cell."""
    require_count("fine", fine, 0)
    if fine == 1:
        raise ValueError("fine=1 leaves the grid as it is; use 0, or at least 2 steps between neighbours")
    axes = {name: _values(model, name, values) for name, values in (("degree", degrees), ("coef0", coef0s))}
    coarse = _over_axes(search, model, Cs, gammas, axes, refit and not fine)
    if not fine or not has_scores(coarse.table):
        return coarse
    best = coarse.best
    axes = {name: axis and [getattr(best, name)] for name, axis in axes.items()}
    near = None if gammas is None else finer(coarse.gammas, best.gamma, fine)
    found = _over_axes(search, model, finer(coarse.Cs, best.C, fine), near, axes, refit)
    return replace(found, coarse=coarse)


def finer(values: list[float], best: float, steps: int) -> list[float]:
    """`best` and the values between it and its neighbours, in equal ratios; beyond the grid's edge as many.

    Examples
    --------

    >>> finer([1.0, 16.0, 256.0], 16.0, 2)
    [4.0, 16.0, 64.0]
    >>> finer([1.0, 16.0, 256.0], 256.0, 4)
    [32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0]
    """
    if len(values) == 1:
        return [best]
    at = values.index(best)
    below = best / values[at - 1] if at else values[1] / best
    above = values[at + 1] / best if at + 1 < len(values) else below
    ratios = [*(below ** (-t / steps) for t in range(steps - 1, 0, -1)), 1.0]
    return [best * ratio for ratio in (*ratios, *(above ** (t / steps) for t in range(1, steps)))]


def _values(model: Any, name: str, values: Iterable[Any] | None) -> list[Any]:
    """The values of an axis, ascending; none for the model's own."""
    if values is None:
        return []
    given = ascending(f"{name}s", values)
    require_of_kernel((model.model if is_one_vs_one(model) else model).kernel, name, given)
    return given


def ascending(name: str, values: Any) -> list[Any]:
    """The values of an axis in ascending order; those of C and gamma must be positive."""
    if not isinstance(values, Iterable):
        raise TypeError(f"{name}={values!r} must be a list of numbers; for one setting use cross_validate")
    given = list(values)
    if not given:
        raise ValueError(f"{name} is empty; at least one value is needed")
    if name in ("Cs", "gammas"):
        for value in given:
            require_positive(f"a value of {name}", value)
        given = list(map(float, given))
    if len(set(given)) < len(given):
        raise ValueError(f"{name}={given!r} has a value twice")
    return sorted(given)


def require_of_kernel(kernel: str, name: str, values: list[Any]) -> None:
    """Refuse values of a parameter that the kernel does not have."""
    if name not in about(kernel).parameters:
        raise ValueError(f"{name}s={values!r}: the {kernel} kernel has no {name}; leave {name}s out")


def _over_axes(search: SearchOf, model: Any, Cs: Any, gammas: Any, axes: dict[str, list[Any]], refit: bool) -> Any:
    """One search for each degree and coef0, as one: that of the best cell, with all cells."""
    named = {name: values for name, values in axes.items() if values}
    settings = [dict(zip(named, values, strict=True)) for values in itertools.product(*named.values())]
    founds: list[Outcome] = [search(_with(model, of), Cs=Cs, gammas=gammas, refit=refit) for of in settings]
    tables = [[replace(cell, **of) for cell in found.table] for found, of in zip(founds, settings, strict=True)]
    table, up = list(itertools.chain(*tables)), founds[0].greater_is_better
    at = table.index(best_of(table, up)) // len(tables[0]) if has_scores(table) else 0
    seconds = sum(found.seconds for found in founds)
    return replace(founds[at], table=table, degrees=axes["degree"], coef0s=axes["coef0"], seconds=seconds)


def _with(model: Any, parameters: dict[str, Any]) -> Any:
    """The model with another kernel; it has learned nothing."""
    if is_one_vs_one(model):
        return model.clone({"model": _with(model.model, parameters)})
    if isinstance(model, SmoothSVM):
        return copy.copy(model).set_params(**parameters)
    return model.clone(parameters)
