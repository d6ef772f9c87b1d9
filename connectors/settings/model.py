"""The [model] section: an algorithm and its parameters."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

from .checks import Check, key, one_of, parse_window, window

if TYPE_CHECKING:
    from streamsvm.estimators.learner.classifier import OnlineSVM


def _learners() -> dict[str, Any]:
    """The learners by name; this loads the engine, which a command that needs no model does without."""
    from streamsvm.estimators.mixture.mixture import FOR_TWO_CLASSES

    return FOR_TWO_CLASSES


def _algorithm(value: str) -> str | None:
    return one_of(*_learners())(value)


def _learner_s(name: str) -> Check:
    """The check that the learners themselves make of this parameter; it raises their error."""

    def check(value: Any) -> None:
        made = next(made for made in _learners().values() if name in inspect.signature(made).parameters)
        made(**{name: value})

    return check


@dataclass(frozen=True)
class ModelSettings:
    """The algorithm and its parameters, with the names, defaults and ranges of the class that implements it.

    Only the default of `scaling` differs: the trainer scales features whatever gamma is.  A parameter that not every
    algorithm has is unset by default.

    Parameters
    ----------
    algorithm
        ``"lasvm"``; ``"auto"``, which chooses C, gamma and the window itself; ``"mixture"``, which asks simple experts
        beside ``"auto"``, and takes its parameters; or, without a bias, ``"lasvm-g"``,
        ``"lasvm-nc"`` and ``"lasvm-i"`` (for noisy labels), ``"full"``.
    scaling
        ``"standard"``: the model scales each feature to mean 0 and standard deviation 1, by running statistics that
        follow the stream.  Features that are only 0 or 1, and sparse input, stay as they come.  ``"none"``: all
        features stay as they come.
    window
        How long an example stays: a number of further examples, at least 1; or a time, such as ``"90s"``, ``"30m"``,
        ``"12h"``, ``"7d"`` or ``"2w"``, by the events' own times.  Unset: for ever.
    metric
        Of ``"auto"`` only, what it chooses for: ``"accuracy"``, or ``"gmean"``, by which a rare class counts as much as
        the other.
    reservoir
        Largest number of examples that the model remembers beside its members, half of each class.
    """

    algorithm: str = key("lasvm", _algorithm)
    C: float = key(10.0, _learner_s("C"))
    kernel: str = key("rbf", _learner_s("kernel"))
    gamma: float | str = key("scale", _learner_s("gamma"))
    scaling: str = key("standard", one_of("standard", "none"))
    degree: int = key(3, _learner_s("degree"))
    coef0: float = key(0.0, _learner_s("coef0"))
    pos_weight: float | str = key(1.0, _learner_s("pos_weight"))
    threshold: float | str = key(0.0, _learner_s("threshold"))
    metric: str = key("accuracy", _learner_s("metric"))
    tol: float = key(1e-3, _learner_s("tol"), formerly="tau")
    budget: int | None = key(None, _learner_s("budget"))
    on_budget: str | None = key(None, _learner_s("on_budget"))
    window: int | str | None = key(None, window)
    reservoir: int = key(4000, _learner_s("reservoir"))
    cache_mb: float | None = key(None, _learner_s("cache_mb"))
    reprocess: str | int | None = key(None, _learner_s("reprocess"))
    delta_max: float | None = key(None, _learner_s("delta_max"))
    admission: str | None = key(None, _learner_s("admission"))
    clean_every: int | None = key(None, _learner_s("clean_every"))
    max_non_sv: int | None = key(None, _learner_s("max_non_sv"))
    steps: str | None = key(None, _learner_s("steps"))
    ramp_s: float | None = key(None, _learner_s("ramp_s"))
    ramp_warmup: int | None = key(None, _learner_s("ramp_warmup"))

    @property
    def implementation(self) -> "type[OnlineSVM]":
        """The class of the algorithm."""
        return _learners()[self.algorithm]

    def parameters(self) -> dict[str, Any]:
        """Arguments for the class."""
        given = {name: value for name, value in asdict(self).items() if value is not None}
        if self.window is not None:
            given["window"] = parse_window(self.window)
        if self.scaling == "none":
            given["scaling"] = None
        known = self.known
        return {name: given.get(name, known[name].default) for name in known}

    @property
    def known(self) -> Mapping[str, inspect.Parameter]:
        """The parameters that the algorithm has; those of the learner in it, if it asks experts beside one."""
        made = _learners()["auto"] if self.algorithm == "mixture" else self.implementation
        return inspect.signature(made).parameters

    def made(self, of_classes: Callable[[Any], Any] = lambda learner: learner) -> Any:
        """A model that has learned nothing; `of_classes` makes a learner one of several classes."""
        if self.algorithm == "mixture":
            return self.implementation(of_classes(_learners()["auto"](**self.parameters())))
        return of_classes(self.implementation(**self.parameters()))

    def bounds(self) -> dict[str, Any]:
        """The settings that bound the model's size, as the file has them; None for those without effect."""
        how = None if self.budget is None else self.on_budget or "remove"
        return {"budget": self.budget, "on_budget": how, "window": self.window}

    def problems(self, is_multiclass: bool = False) -> list[str]:
        """What is wrong with settings that are right one by one: a line for each problem.

        `is_multiclass` says whether there are more than two classes.
        """
        known = self.known
        given = [of.name for of in fields(self) if getattr(self, of.name) != of.default]
        found = [
            f"model.{name} is no setting of {self.algorithm!r}; it belongs to {_having(name)}"
            for name in given
            if name not in {"algorithm", *known}
        ]
        if found:
            return found
        try:
            self.made()
            if is_multiclass:
                from ..records.models import MulticlassModel

                self.made(MulticlassModel)
        except (ArithmeticError, TypeError, ValueError) as error:
            return [f"[model]: {error}"]
        return []


def _having(parameter: str) -> str:
    having = (name for name, made in _learners().items() if parameter in inspect.signature(made).parameters)
    return ", ".join(map(repr, having))
