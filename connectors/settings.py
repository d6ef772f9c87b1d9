"""The configuration: one TOML file, overridden by the environment, overridden by flags.

``[section] key`` of the file is ``STREAMSVM_SECTION_KEY`` in the environment and ``section.key=value`` as a flag.
Relative folders are relative to the file.  Everything that is wrong is reported at once.
"""

import inspect
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from streamsvm import LASVM, LASVMG, LASVMI, LASVMNC, FullSVM

from .layers import Check, collect
from .transport import TOPIC_NAME

Algorithm = type[LASVM] | type[LASVMG] | type[LASVMNC] | type[LASVMI] | type[FullSVM]
ALGORITHMS: dict[str, Algorithm] = {
    "lasvm": LASVM,
    "lasvm-g": LASVMG,
    "lasvm-nc": LASVMNC,
    "lasvm-i": LASVMI,
    "full": FullSVM,
}


class ConfigError(ValueError):
    """A configuration that cannot be used; `problems` has one line for each thing that is wrong."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = list(problems)


def _positive(value: float) -> str | None:
    return None if value > 0 and math.isfinite(value) else "a positive number"


def _finite(value: float) -> str | None:
    return None if math.isfinite(value) else "a finite number"


def _at_most_1(value: float) -> str | None:
    return None if value <= 1 and math.isfinite(value) else "a finite number, at most 1"


def _fraction(value: float) -> str | None:
    return None if 0 <= value <= 1 else "a fraction between 0 and 1"


def _adaptive_or_count(value: str | int) -> str | None:
    return None if value == "adaptive" or (isinstance(value, int) and value >= 0) else '"adaptive" or a count'


def _topic(value: str) -> str | None:
    return None if TOPIC_NAME.fullmatch(value) else "1 to 200 letters, digits, '.', '_' or '-'"


def _at_least(minimum: int) -> Check:
    return lambda value: None if value >= minimum else f"at least {minimum}"


def _one_of(*choices: str) -> Check:
    return lambda value: None if value in choices else f"one of {', '.join(map(repr, choices))}"


def _key(default: Any, check: Check) -> Any:
    return field(default=default, metadata={"check": check})


@dataclass(frozen=True)
class LogSettings:
    """The record log: its folder, the topics in it, and the size at which a new segment file is begun."""

    dir: Path = Path("log")
    topic: str = _key("events", _topic)
    predictions: str = _key("predictions", _topic)
    dlq: str = _key("dlq", _topic)
    segment_mb: float = _key(16.0, _positive)


@dataclass(frozen=True)
class ModelSettings:
    """The algorithm and its parameters, with the names and defaults of the class that implements it.

    Those that not every algorithm has are None unless they are given.
    """

    algorithm: str = _key("lasvm", _one_of(*ALGORITHMS))
    C: float = _key(1.0, _positive)
    kernel: str = _key("rbf", _one_of("rbf", "linear", "poly", "sigmoid"))
    gamma: float = _key(1.0, _positive)
    degree: int = _key(3, _at_least(1))
    coef0: float = _key(0.0, _finite)
    pos_weight: float = _key(1.0, _positive)
    tau: float = _key(1e-3, _positive)
    cache_mb: float = _key(256.0, _positive)
    reprocess: str | int | None = _key(None, _adaptive_or_count)
    delta_max: float | None = _key(None, _positive)
    clean_every: int | None = _key(None, _at_least(1))
    max_non_sv: int | None = _key(None, _at_least(0))
    steps: str | None = _key(None, _one_of("pair", "single"))
    ramp_s: float | None = _key(None, _at_most_1)
    ramp_warmup: int | None = _key(None, _at_least(0))

    @property
    def implementation(self) -> Algorithm:
        """The class of the algorithm."""
        return ALGORITHMS[self.algorithm]

    def parameters(self) -> dict[str, Any]:
        """What the class is made with."""
        given = {name: value for name, value in asdict(self).items() if value is not None}
        known = inspect.signature(self.implementation).parameters
        return {name: given.get(name, known[name].default) for name in known if name != "seed"}

    def superfluous(self) -> list[str]:
        """Names of settings that are given although the algorithm has no such parameter."""
        known = inspect.signature(self.implementation).parameters
        return [name for name, value in asdict(self).items() if value is not None and name not in {"algorithm", *known}]


@dataclass(frozen=True)
class FeatureSettings:
    """How features are scaled, on how many first events the scale is fitted, and (option) which ones there must be."""

    scale: str = _key("standard", _one_of("standard", "minmax", "none"))
    warmup: int = _key(300, _at_least(1))
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class LabelSettings:
    """Names of the two labels, if they are not true/false, 0/1 or -1/+1."""

    positive: str | None = None
    negative: str | None = None


@dataclass(frozen=True)
class DaemonSettings:
    """The loop.

    Parameters
    ----------
    batch
        Records predicted, then learned, together; cut at multiples of it, so 1 learns each record at once.
    state_dir
        Folder of the checkpoints; one daemon at a time may use it.
    checkpoint_records, checkpoint_seconds
        A checkpoint is written after so many records, or so much time, whichever is first.
    keep
        Number of checkpoints kept.
    window
        Number of labelled events in the rolling metrics.
    max_bad
        Stop if more than this fraction of the last 1000 records is bad.
    follow
        Wait for more records at the end of the log; otherwise stop there.
    """

    batch: int = _key(64, _at_least(1))
    state_dir: Path = Path("state")
    checkpoint_records: int = _key(2000, _at_least(1))
    checkpoint_seconds: float = _key(30.0, _positive)
    keep: int = _key(3, _at_least(1))
    window: int = _key(1000, _at_least(1))
    max_bad: float = _key(0.1, _fraction)
    follow: bool = True


@dataclass(frozen=True)
class Settings:
    """A whole configuration; see `load`."""

    log: LogSettings = field(default_factory=LogSettings)
    model: ModelSettings = field(default_factory=ModelSettings)
    features: FeatureSettings = field(default_factory=FeatureSettings)
    label: LabelSettings = field(default_factory=LabelSettings)
    daemon: DaemonSettings = field(default_factory=DaemonSettings)

    def fingerprint(self) -> dict[str, Any]:
        """What a checkpoint depends on, by dotted name: a model cannot go on under another value of any of these."""
        sections = {
            "model": {"algorithm": self.model.algorithm, **self.model.parameters()},
            "features": asdict(self.features),
            "label": asdict(self.label),
        }
        values = {f"{name}.{key}": value for name, section in sections.items() for key, value in section.items()}
        del values["model.cache_mb"]  # memory, not meaning
        return {**values, "features.names": list(self.features.names), "log.topic": self.log.topic}


SECTIONS: dict[str, Any] = {section.name: section.default_factory for section in fields(Settings)}


def load(
    path: Path, environment: Mapping[str, str], overrides: Sequence[str] = (), *, log_must_exist: bool = False
) -> Settings:
    """Read a configuration.

    Parameters
    ----------
    path
        The TOML file.
    environment
        Environment variables; those of a known section count, such as ``STREAMSVM_MODEL_GAMMA``.
    overrides
        Flags of the form ``section.key=value``.
    log_must_exist
        Whether a missing folder of the log is a problem.

    Raises
    ------
    ConfigError
        With every problem found.
    """
    values, problems = collect(SECTIONS, path, environment, overrides)
    parts = {name: section(**values[name]) for name, section in SECTIONS.items()}
    for name, key in (("log", "dir"), ("daemon", "state_dir")):
        parts[name] = replace(parts[name], **{key: path.parent / getattr(parts[name], key)})
    settings = Settings(**parts)
    problems += _contradictions(settings)
    if log_must_exist and not settings.log.dir.is_dir():
        problems.append(f"log.dir = {str(settings.log.dir)!r}: there is no such folder")
    if problems:
        raise ConfigError(problems)
    return settings


def _having(parameter: str) -> str:
    having = (name for name, made in ALGORITHMS.items() if parameter in inspect.signature(made).parameters)
    return ", ".join(map(repr, having))


def _contradictions(settings: Settings) -> list[str]:
    problems = []
    log, label, names = settings.log, settings.label, settings.features.names
    if len({log.topic, log.predictions, log.dlq}) < 3:
        problems.append("log.topic, log.predictions and log.dlq must be three different topics")
    if (label.positive is None) != (label.negative is None) or (label.positive and label.positive == label.negative):
        problems.append("label.positive and label.negative must both be given, and differ")
    problems += [
        f"model.{name} is no setting of {settings.model.algorithm!r}; it belongs to {_having(name)}"
        for name in settings.model.superfluous()
    ]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        problems.append(f"features.names repeats {', '.join(map(repr, repeated))}")
    return problems
