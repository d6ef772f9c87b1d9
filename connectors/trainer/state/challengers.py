"""The models of a partition that learn in the shadow of the one that serves, and their comparison with it."""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import orjson

from streamsvm.validation import Interval

from ...records.classes import KnownClasses
from ...records.predictions import Said
from ...records.said import read_said, write_said
from ...records.split import Split
from ...settings.challengers import FIRST, NOW, ChallengerSettings
from ...settings.sections import Settings
from .checkpoint import Checkpoint, check_fingerprint
from .counters import Counters
from .estimates import Estimates
from .models import ModelKind, SingleModel, kind_of
from .quality.arms import Arm, Arms, read_arms
from .quality.comparison import Comparison, Difference
from .quality.losses import ERROR, Losses

logger = logging.getLogger(__name__)

TERMS = "terms"  # of a checkpoint: which models have served
_ARMS, _ANSWERED = "arms", "served.answered"  # what each model has answered, and which events still wait
_SPLIT = "split"  # the shares of the events
_MODEL, _REST, _SAID = "model", "state", "said"  # of a challenger's parts in a checkpoint


class Term(NamedTuple):
    """A model serves from an offset on."""

    name: str
    offset: int  # of the first event that it predicts
    control: int  # offset of the record that called it, on the topic of control; -1: none did


@dataclass
class Challenger:
    """A model in the shadow.

    Attributes
    ----------
    settings
        Its section.
    models
        The model.  It has no `Records` of its own: raw events come as the numbers of the model that serves.
    comparison
        How it does beside the model that serves.
    counters, offset, estimates, labelling
        As those of `State`, for `learning.teach`.
    said
        What it said about events that wait for their labels, by key.
    is_awaited
        Whether it begins later, because an earlier run over the log has noted where; see `serving`.
    begun
        Offset of the first event whose label teaches it; None: that is still to be found out.
    caught_up
        Offset up to which it has caught up; None: it does not, or no longer.
    dropped
        Why it was dropped; empty while it goes on.
    """

    settings: ChallengerSettings
    models: SingleModel
    comparison: Comparison
    counters: Counters = field(default_factory=Counters)
    offset: int = 0
    estimates: Estimates | None = None
    labelling: None = None
    said: dict[int, Said] = field(default_factory=dict)
    is_awaited: bool = False
    begun: int | None = None
    caught_up: int | None = None
    dropped: str = ""

    @property
    def name(self) -> str:
        return self.settings.name

    @property
    def version(self) -> int:
        """Number of its lessons so far."""
        return self.counters.learned + self.counters.late

    @property
    def is_active(self) -> bool:
        """Whether it takes part: it was not dropped, has begun, and does not catch up."""
        return not self.dropped and not self.is_awaited and self.caught_up is None

    def drop(self, reason: str) -> None:
        """Give it up; nothing of it is kept but the reason and the comparison."""
        logger.error("challenger %r is dropped: %s. The model that serves goes on", self.name, reason)
        self.dropped = reason[:500]
        self.said = {}

    def take_part(self, models: SingleModel, counters: Counters, said: dict[int, Said], offset: int) -> None:
        """It has caught up, with this model."""
        self.models = models.with_records(None)
        self.counters, self.said, self.offset, self.caught_up = replace(counters), said, offset, None

    def to_blobs(self) -> dict[str, bytes]:
        """Its parts for a checkpoint; one that is too large is dropped."""
        prefix = f"challenger.{self.name}."
        parts = {_MODEL: self.models.single.to_bytes(), _SAID: write_said(self.said)} if self.is_active else {}
        n_bytes, limit = sum(map(len, parts.values())), self.settings.max_mb * 2**20
        if n_bytes > limit:
            self.drop(f"it has {n_bytes / 2**20:.3g} MB in a checkpoint, more than max_mb = {self.settings.max_mb:g}")
            parts = {}
        found = list(self.comparison.differences())
        rest = {
            "fingerprint": self.settings.fingerprint(),
            "counters": asdict(self.counters),
            "comparison": self.comparison.to_json(),
            "differences": [[each.metric, each.champion, each.challenger, *each.gain] for each in found],
            "offset": self.offset,
            "awaited": self.is_awaited,
            "begin": self.settings.begin,
            "begun": self.begun,
            "caught_up": self.caught_up,
            "dropped": self.dropped,
        }
        parts[_REST] = orjson.dumps(rest, option=orjson.OPT_NON_STR_KEYS)
        return {prefix + name: part for name, part in parts.items()}


class Challengers:
    """The challengers of a partition, and which model serves.

    Parameters
    ----------
    settings
        The configuration.
    classes
        The classes of the partition.
    terms
        The models that have served so far, the present one last; default: that of [model].

    Attributes
    ----------
    all : list of Challenger
        All models beside the one that serves.
    said : dict
        What the model that serves said about events that wait for their labels, by key.
    split : Split
        Which challenger answers an event.
    arms : Arms or None
        How each model does on what it has answered; None if no challenger has had a share.
    answered : dict
        The name of the model that has answered such an event, by key.
    next_request : int
        Offset of the next request on the topic log.control.
    fresh : list of str
        Those that begin here, where the checkpoint did not have them, until this is noted.  No checkpoint has them.
    """

    def __init__(self, settings: Settings, classes: KnownClasses, terms: Iterable[Term] = ()) -> None:
        self._settings = settings
        self._classes = classes
        self.terms = [*terms] or [Term(FIRST, 0, -1)]
        known = settings.models()
        if self.serving not in (FIRST, *known):
            self.terms.append(Term(FIRST, 0, self.terms[-1].control))
        self.all = [self._new(known[name]) for name in known if name != self.serving]
        self.said: dict[int, Said] = {}
        self.answered: dict[int, str] = {}
        self.next_request = 0
        self.fresh: list[str] = []
        self.split = Split({}, by_key=True)
        self.arms: Arms | None = None
        if not settings.log.control:  # otherwise `serving` notes which split holds where
            self.divide(settings.split())

    @property
    def serving(self) -> str:
        """The name of the model that serves."""
        return self.terms[-1].name

    def answering(self, key: bytes | None, number: int) -> str:
        """The name of the model that answers an event, given its record's key and its id; empty if only one answers."""
        if not self.split:
            return ""
        name = self.split.of(key, number)
        return name if any(each.name == name for each in self.active) else self.serving

    def divide(self, split: Split) -> None:
        """Let challengers answer these shares from now on."""
        self.split = split
        if split and self.arms is None:
            self.arms = Arms(self._losses, self._settings.comparison.error, [*self._settings.models()])

    @property
    def wanted_split(self) -> Split:
        """The shares of the settings, without those of challengers that take no part."""
        wanted, idle = self._settings.split(), {each.name for each in self.all if not each.is_active}
        shares = {name: share for name, share in wanted.shares.items() if name not in idle}
        return Split(shares, by_key=wanted.by_key)

    @property
    def with_share(self) -> list[Challenger]:
        """The challengers that answer a share."""
        return [challenger for challenger in self.active if challenger.name in self.split.shares]

    @property
    def before(self) -> str:
        """The name of the model that served before; without one, of the model that serves."""
        return self.terms[-2:][0].name

    def begin(self, first_of: Callable[[ChallengerSettings], int], offset: int) -> bool:
        """Let those that are new begin, where the next event has this offset; return whether one asked `first_of`."""
        new = [each for each in self.all if each.begun is None]
        for each in new:
            each.begun = 0 if each.settings.begin == NOW else first_of(each.settings)
            if each.settings.begin != NOW and each.begun < offset:
                each.caught_up = each.begun
        return any(each.settings.begin != NOW for each in new)

    def swap(self, name: str, models: SingleModel, counters: Counters, offset: int, request: int) -> Challenger:
        """Begin a term of this challenger, with the model that serves in its place; return the challenger.

        Parameters
        ----------
        name
            Of the challenger.
        models, counters, offset
            Those of the model that serves.
        request
            Offset of the record that calls it; -1: none did.
        """
        own = self._settings.models()[self.serving]
        champion = Challenger(own, models.with_records(None), self._compared(), replace(counters), offset, begun=0)
        (place,) = (i for i, challenger in enumerate(self.all) if challenger.name == name)
        found = self.all[place]
        champion.said, self.said = self.said, found.said
        self.all[place] = champion
        self.terms.append(Term(name, offset, request))
        for challenger in self.all:
            challenger.comparison = self._compared()
        return found

    def await_(self, name: str) -> None:
        """Let a challenger wait until `begin_empty` is called."""
        for challenger in self.all:
            if challenger.name == name and not challenger.dropped:
                challenger.is_awaited = True

    def begin_empty(self, name: str) -> None:
        """Let a challenger begin now."""
        self.all = [replace(self._new(each.settings), begun=0) if each.name == name else each for each in self.all]

    def replaced_by(self, rebuilt: "Challengers") -> "Challengers":
        """Those of a rebuilt state of the same place, if it has them; one that takes no part stays as it is."""
        if not rebuilt.all:
            return self
        found = {each.name: each for each in rebuilt.all}
        rebuilt.all = [
            replace(found[each.name], settings=each.settings) if each.is_active else each for each in self.all
        ]
        rebuilt._settings, rebuilt.next_request, rebuilt.split = self._settings, self.next_request, self.split
        return rebuilt

    def _new(self, own: ChallengerSettings) -> Challenger:
        return Challenger(own, SingleModel(self._kind(own).begun()), self._compared())

    def _kind(self, own: ChallengerSettings) -> ModelKind:
        return kind_of(self._settings, own.model)._replace(records=None)

    def _compared(self) -> Comparison:
        """A comparison in the present term.

        The errors of all challengers and of all terms together are at most that of the settings: 1 / (k (k + 1)) adds
        up to 1.
        """
        wanted, n, term = self._settings.comparison, max(1, len(self._settings.challenger)), len(self.terms)
        return Comparison(wanted.error / n / (term * (term + 1)), self._losses)

    @property
    def _losses(self) -> Losses:
        decides = self._settings.decide.error > 0.0
        return Losses(self._settings.comparison.miss_cost, are_two=self._classes.are_two, decides=decides)

    @property
    def active(self) -> list[Challenger]:
        """Those that take part."""
        return [challenger for challenger in self.all if challenger.is_active]

    @property
    def catching_up(self) -> list[Challenger]:
        """Those that catch up."""
        return [each for each in self.all if not each.dropped and each.caught_up is not None]

    def erase(self, keys: Sequence[int]) -> int:
        """Forget events, given by their keys, in every challenger; return how many examples of models that were."""
        n_forgotten = 0
        waiting: list[dict] = [self.said, self.answered, *(challenger.said for challenger in self.all)]
        for of_events in waiting:
            for key in keys:
                of_events.pop(key, None)
        for challenger in self.active:
            n_forgotten += challenger.models.trained().learner.forget(list(keys))
        return n_forgotten

    def to_blobs(self) -> Iterator[dict[str, bytes]]:
        """All of them for a checkpoint: first what belongs to the model that serves, and then each challenger.

        The challengers may come to the place of the checkpoint after the first part was taken.
        """
        if not self._settings.challenger:
            yield {}
            return
        blobs = {TERMS: orjson.dumps([*map(list, self.terms)]), "served.said": write_said(self.said)}
        if self.arms is not None:
            blobs[_SPLIT] = orjson.dumps([self.split.shares, self.split.by_key])
        yield blobs
        if self.arms is not None:
            yield {_ARMS: orjson.dumps(self.arms.to_json()), _ANSWERED: orjson.dumps([*self.answered.items()])}
        for challenger in self.all:
            yield challenger.to_blobs() if challenger.name not in self.fresh else {}

    def restore(self, blobs: Mapping[str, bytes]) -> None:
        """Go on from a checkpoint; a challenger that it does not have, or with other settings, begins anew."""
        if "served.said" in blobs:
            self.said = read_said(blobs["served.said"])
        if self._settings.log.control and _SPLIT in blobs:
            shares, by_key = orjson.loads(blobs[_SPLIT])
            self.divide(Split(shares, by_key=by_key))
        if self.arms is not None and _ARMS in blobs:
            self.arms.restore(orjson.loads(blobs[_ARMS]))
            self.answered = {int(key): str(name) for key, name in orjson.loads(blobs[_ANSWERED])}
        for challenger in self.all:
            prefix = f"challenger.{challenger.name}."
            own = {name.removeprefix(prefix): blob for name, blob in blobs.items() if name.startswith(prefix)}
            if own:
                self._restore(challenger, own)
            elif blobs:
                self._begin_here(challenger, "")

    def _begin_here(self, challenger: Challenger, why: str) -> None:
        is_now = challenger.settings.begin == NOW
        logger.info("challenger %r begins%s", challenger.name, why or (" now" if is_now else " with an earlier event"))
        if is_now:
            self.fresh.append(challenger.name)

    def _restore(self, challenger: Challenger, parts: Mapping[str, bytes]) -> None:
        rest, own = orjson.loads(parts[_REST]), challenger.settings
        has_other_begin = own.begin not in (NOW, rest.get("begin"))  # the key may be removed later
        if rest["fingerprint"] != orjson.loads(orjson.dumps(own.fingerprint())) or has_other_begin:
            self._begin_here(challenger, " anew: its settings have changed")
            return
        challenger.counters = Counters(**rest["counters"])
        challenger.offset, challenger.dropped = int(rest["offset"]), str(rest["dropped"])
        challenger.begun, challenger.caught_up = rest.get("begun", 0), rest.get("caught_up")
        challenger.is_awaited = bool(rest.get("awaited"))
        if not challenger.comparison.restore(rest["comparison"]):
            logger.info("the comparison with challenger %r begins anew: it has other metrics", challenger.name)
        if challenger.is_active:
            challenger.models = SingleModel(self._kind(own).read(parts[_MODEL]))
            challenger.said = read_said(parts[_SAID])


class Standing(NamedTuple):
    """How a challenger of a checkpoint does."""

    name: str
    n: int  # labels
    differences: list[Difference]
    dropped: str
    begun: int  # offset of the first event whose label teaches it
    caught_up: int | None  # offset up to which it has caught up; None: it takes part


def read_standings(blobs: Mapping[str, bytes]) -> list[Standing]:
    """How the challengers of a checkpoint do, for those who do not know the settings."""
    found = []
    for name, blob in blobs.items():
        if name.startswith("challenger.") and name.endswith(f".{_REST}"):
            rest = orjson.loads(blob)
            each = [Difference(metric, a, b, Interval(*gain)) for metric, a, b, *gain in rest["differences"]]
            n = int(rest["comparison"]["gains"][ERROR][0])
            own = name[len("challenger.") : -len(_REST) - 1]
            at = None if rest["dropped"] else rest.get("caught_up")
            found.append(Standing(own, n, each, rest["dropped"], rest.get("begun") or 0, at))
    return found


def why_not(each: Challenger | Standing, offset: int) -> str:
    """Why a challenger takes no part where the model that serves is at this offset; empty if it does."""
    if each.dropped:
        return f"was dropped: {each.dropped}"
    begun = each.begun or 0
    if each.caught_up is not None:
        return f"is catching up, at offset {each.caught_up:,} of {offset:,}; it began with {begun:,}"
    return f"begins at offset {begun:,}, and the trainer is at {offset:,}" if begun > offset else ""


def read_answers(blobs: Mapping[str, bytes]) -> list[Arm]:
    """How the models of a checkpoint do on what they have answered; empty if one has answered all."""
    return read_arms(orjson.loads(blobs.get(_ARMS, b"{}")))


def read_terms(blobs: Mapping[str, bytes]) -> list[Term]:
    """Which models have served, by a checkpoint; empty if it knows none."""
    return [Term(str(name), int(offset), int(at)) for name, offset, at in orjson.loads(blobs.get(TERMS, b"[]"))]


def serving_of(blobs: Mapping[str, bytes]) -> str:
    """The name of the model that serves, by a checkpoint."""
    terms = read_terms(blobs)
    return terms[-1].name if terms else FIRST


def check_settings(checkpoint: Checkpoint, settings: Settings, folder: Path) -> None:
    """Refuse other settings than those of the checkpoint, of the model that serves by it.

    Raises
    ------
    ConfigError
        If a setting differs; the message names each one.
    """
    check_fingerprint(checkpoint, settings.serving(serving_of(checkpoint.blobs)).fingerprint(), folder)
