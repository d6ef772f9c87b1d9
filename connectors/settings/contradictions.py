"""Finds settings that contradict each other: a line for each problem."""

import re
from collections.abc import Callable, Iterator, Mapping
from importlib.util import find_spec
from typing import Any

from .opening import backend_of
from .sections import Settings

_ERRORS_UNSEEN = (
    ": after the last label, errors would not be seen. labelling.max_fraction bounds the share of the events that are "
    "asked about"
)
_ANOTHER_FOLDER = (
    ": the questions go on with the model of [model]. Instead of a promotion, write the better settings into [model], "
    "and begin with another daemon.state_dir"
)
_GIVEN_UP = ": the newest checkpoint may belong to a transaction that was given up"
_NO_PROMISE = ": the promise needs the labels of all events that are not decided, and of random others"
_ONE_MODEL = (
    ": it stands beside one model, and each key has its own. To try other models of the keys, run a second trainer "
    "with its own daemon.state_dir, log.predictions, log.dlq and group.id"
)
_RARE_FIRST = '; use "mixed", "active" or "all"'
_SEVERAL = 'model.algorithm = "auto" or "mixture" has several'
_TERMS = ": on the topic beside it, the trainers note which model served when"
_UNFAIR = ": otherwise the model that serves chooses which labels are asked for, and a comparison on them is not fair"
_UNLIKE = (
    ": the merger merges models of equal settings. Compare the challengers without it, then write the better settings "
    "into [model] of all trainers"
)
_SETTING = re.compile(r'(\w+)\.(\w+)(?: = "([\w-]*)")?')


def _is_estimated(settings: Settings) -> object:
    return settings.estimates.loo or settings.estimates.folds


_MEANINGS: dict[str, Callable[[Settings], object]] = {  # of what is not one setting
    "[[challenger]]": lambda settings: settings.challenger,
    "a [[challenger]]": lambda settings: settings.challenger,
    "[[challenger]] with log.questions": lambda settings: settings.challenger and settings.log.questions,
    "a group": lambda settings: not settings.group.assign,
    "a [kafka] section": lambda settings: backend_of(settings).has_groups,
    "challenger.share": lambda settings: any(challenger.share for challenger in settings.challenger),
    "daemon.keep = 2 or more": lambda settings: settings.daemon.keep >= 2,
    "decide.error with log.questions": lambda settings: settings.decide.error and settings.log.questions,
    "estimates.loo = true or estimates.folds = 2 or more": _is_estimated,
    "estimates.loo and estimates.folds": _is_estimated,
    "model.threshold = 0": lambda settings: settings.model.threshold == 0.0,
    "more than two classes": lambda settings: settings.label.vocabulary is not None,
    "obstore": lambda _: find_spec("obstore"),
    "one kind of model": lambda settings: settings.model.algorithm not in ("auto", "mixture"),
    "one model to ask about": lambda settings: settings.model.algorithm != "mixture",
    "two classes": lambda settings: settings.label.vocabulary is None,
    "two classes, and comparison.miss_cost": lambda settings: (
        settings.label.vocabulary is None and settings.comparison.miss_cost != 1.0
    ),
}

NEEDS = (  # what is given, what it needs, and why
    ("[[challenger]]", 'daemon.per = "partition"', _ONE_MODEL),
    ("[[challenger]] with log.questions", 'labelling.selection = "random"', _UNFAIR),
    ('comparison.promote = "cost"', "two classes, and comparison.miss_cost", ""),
    ('comparison.promote = "decided"', "decide.error", ""),
    ('comparison.promote = "g-mean"', "two classes", ""),
    ('comparison.promote = "{}"', "log.control", _TERMS),
    ('daemon.begin = "merged"', "log.merged", ", the topic on which `streamsvm merger` publishes"),
    ("daemon.exactly_once", "a group", ", whose offsets are part of each transaction: remove group.assign"),
    ("daemon.exactly_once", "a [kafka] section", ": the embedded log has no transactions"),
    ("daemon.exactly_once", "daemon.keep = 2 or more", _GIVEN_UP),
    ("daemon.publish_json", "log.model", ", the topic of the models"),
    ("decide.error with log.questions", 'labelling.selection = "undecided"', _NO_PROMISE),
    ("estimates.loo and estimates.folds", 'daemon.per = "partition"', ": they are estimates of one model"),
    ("estimates.loo and estimates.folds", "model.threshold = 0", ": they test the sign of the decision value"),
    ("estimates.loo and estimates.folds", "one kind of model", f": they are estimates of one learner; {_SEVERAL}"),
    ("group.assign", "a [kafka] section", ": the embedded log has no groups"),
    ("group.instance", "a [kafka] section", ": the embedded log has no groups"),
    ('labelling.selection = "undecided"', "decide.error", ", which says what is decided"),
    ('labelling.selection = "undecided"', "labelling.audit", " above 0: otherwise errors would not be seen"),
    ("labelling.rare_first = true", "more than two classes", ": set label.classes or label.max_classes"),
    ('labelling.stop = "recall"', 'model.algorithm = "lasvm"', ", which can be solved without an example"),
    ('labelling.stop = "recall"', "two classes", ": it promises a share of the positives"),
    ('labelling.threshold = "{}"', 'model.algorithm = "lasvm"', ", which can be solved without an example"),
    ('labelling.threshold = "{}"', "model.threshold = 0", ", because it chooses the threshold itself"),
    ('labelling.threshold = "{}"', "two classes", ": with more, the most probable class is predicted"),
    ('log.format = "registry"', "schema.registry", ", its address, such as 'http://localhost:8081'"),
    ("log.control, the topic of promotions,", "a [[challenger]]", ""),
    ("log.estimates", "estimates.loo = true or estimates.folds = 2 or more", ""),
    ("log.merged", "log.model", ", the topic of the models that are merged"),
    ("log.merged", "one kind of model", f": {_SEVERAL}; choose another one"),
    ("log.merged", 'daemon.per = "partition"', ": models of different keys are not merged"),
    ("log.questions", "log.labels", ", the topic of the answers"),
    ("log.questions", "one model to ask about", ': model.algorithm = "mixture" has experts; use "auto"'),
    ("log.questions", 'daemon.per = "partition"', ": a model of each key would need its own labels"),
    ("log.state, the topic of the checkpoints,", 'state.store = "topic"', ""),
    ("schema.password", "schema.user", ""),
    ("schema.registry, the address of a schema registry,", 'log.format = "registry"', ""),
    ("schema.user", "schema.password", ", or STREAMSVM_SCHEMA_PASSWORD in the environment"),
    ('scorer.model = "merged"', "log.merged", ", the topic on which `streamsvm merger` publishes"),
    ('state.store = "objects"', "obstore", ": pip install 'streamsvm[objects]'"),
    ('state.store = "objects"', "state.url", ", the place of the objects, such as 's3://bucket/prefix'"),
    ('state.store = "topic"', "log.state", ", the topic of the checkpoints"),
    ("state.url, the place of the objects,", 'state.store = "objects"', ""),
)
EXCLUDES = (  # what is given, what it does not go with, and why
    ("challenger.share", "log.merged", _UNLIKE),
    ("daemon.publish_json", "features.embed", ": no other program has the embedder"),
    ("daemon.publish_json", 'model.algorithm = "mixture"', ', which has no such form; use "auto"'),
    ("decide.error", "log.merged", ": a merged model has not seen its errors"),
    ("decide.error", 'model.algorithm = "mixture"', ', whose experts it does not know; use "auto"'),
    ("features.names", "features.raw", ", which takes records with any fields"),
    ("features.raw", 'log.format = "float32"', ", whose events are numbers"),
    ("features.transform", 'log.format = "float32"', ", whose events are numbers"),
    ("labelling.max_labels", 'labelling.selection = "undecided"', _ERRORS_UNSEEN),
    ('labelling.stop = "recall"', 'labelling.selection = "undecided"', ", which never stops"),
    ("labelling.rare_first", 'labelling.selection = "auto"', _RARE_FIRST),
    ("labelling.rare_first", 'labelling.selection = "random"', _RARE_FIRST),
    ("labelling.rare_first", 'labelling.selection = "undecided"', _RARE_FIRST),
    ("labelling.threshold", 'labelling.selection = "undecided"', ": decisions are about the most probable label"),
    ('labelling.threshold = "{}"', "estimates.loo and estimates.folds", ", which test the sign of the decision value"),
    ("label.positive and label.negative", "more than two classes", ": they name two classes; leave them out"),
    ("log.control", "log.merged", _UNLIKE),
    ("log.control", "log.questions", _ANOTHER_FOLDER),
    ("log.merged", "features.raw", ": the models of raw events are not merged"),
)


def find_contradictions(settings: Settings) -> list[str]:
    """Every contradiction in a configuration, except inside [kafka] and [model]."""
    return [*_pairs(settings), *_features(settings), *_classes(settings), *_others(settings)]


def _pairs(settings: Settings) -> Iterator[str]:
    """What two settings contradict."""
    for given, needed, why in NEEDS:
        if (value := value_of(given, settings)) and not value_of(needed, settings):
            yield f"{given.format(value)} need{'' if ' and ' in given else 's'} {needed}{why}"
    for given, other, why in EXCLUDES:
        if (value := value_of(given, settings)) and value_of(other, settings):
            yield f"{given.format(value)} do{'' if ' and ' in given else 'es'} not go with {other}{why}"


def lacking(settings: Settings, needs: Mapping[str, str]) -> list[str]:
    """A line for each of these things that a process needs and the settings lack; `needs` says why it needs them."""
    missing = {what: why for what, why in needs.items() if not value_of(what, settings)}
    return [f"{_shown(what, settings)}{why}" for what, why in missing.items()]


def _shown(what: str, settings: Settings) -> str:
    """A setting and its value, before what is said of it."""
    found = None if what in _MEANINGS else _SETTING.match(what)
    value = found and value_of(found.expand(r"\1.\2"), settings)
    return f"{found[1]}.{found[2]} = {'false' if value is False else repr(value)}: " if found else ""


def value_of(what: str, settings: Settings) -> Any:
    """The value of ``log.model``; whether the value is so in ``daemon.begin = "merged"``; or as `_MEANINGS` say."""
    if what in _MEANINGS:
        return _MEANINGS[what](settings)
    found = _SETTING.match(what)
    assert found
    value = getattr(getattr(settings, found[1]), found[2])
    return value if found[3] is None else value == found[3]


def _classes(settings: Settings) -> Iterator[str]:
    label = settings.label
    if label.vocabulary is None:
        return
    if label.vocabulary.limit < 3:
        yield (
            f"label.classes lists {len(label.classes)} of 3 classes or more: name two by label.positive and "
            "label.negative, or let others come by label.max_classes"
        )
    if label.max_classes and label.max_classes < len(label.classes):
        yield f"label.max_classes = {label.max_classes} is less than the {len(label.classes)} of label.classes"


def _features(settings: Settings) -> Iterator[str]:
    features = settings.features
    if not features.raw:
        given = [
            name
            for name in ("id", "label", "time", "kinds", "indicators", "thousands", "width", "embed")
            if name in features.given()
        ]
        if given:
            yield f"{', '.join(f'features.{name}' for name in given)}: raw events have this; set features.raw = true"
        return
    own = {getattr(features, name): name for name in ("id", "label", "time") if getattr(features, name)}
    if len(own) < sum(bool(name) for name in (features.id, features.label, features.time)):
        yield "features.id, features.label and features.time must name different fields"
    for key in ("kinds", "embed"):
        for name in getattr(features, key):
            if own.get(name) in ("id", "label"):
                yield f"features.{key} names {name!r}, which is no feature: it is features.{own[name]}"


def _others(settings: Settings) -> Iterator[str]:
    label, timeout_ms, longest = settings.label, settings.transaction_timeout_ms, settings.daemon.checkpoint_seconds
    # A transaction ends with a checkpoint, and learning and writing delay that.
    if settings.daemon.exactly_once and timeout_ms < 1500 * longest:
        yield (
            f"daemon.exactly_once with daemon.checkpoint_seconds = {longest:g} needs transactions of {1.5 * longest:g} "
            f"seconds at least, and kafka.transaction_timeout_ms is {timeout_ms}: write checkpoints more often, or "
            "raise it (and the broker's transaction.max.timeout.ms, which is 900000 by default)"
        )
    if (total := sum(challenger.share for challenger in settings.challenger)) > 1.0 + 1e-9:
        yield f"the shares of challengers add up to {total:g}, more than 1: share is a part of all events"
    if (label.positive is None) != (label.negative is None) or (label.positive and label.positive == label.negative):
        yield "label.positive and label.negative must both be given, and differ"
    if settings.limits.event_features > settings.limits.model_features:
        yield "limits.event_features must not be larger than limits.model_features"
    for what, names in (
        ("the topics must differ; there is more than one", settings.topics()),
        ("the names of challengers must differ; there is more than one", [own.name for own in settings.challenger]),
        ("features.names repeats", settings.features.names),
    ):
        if repeated := sorted({name for name in names if names.count(name) > 1}):
            yield f"{what} {', '.join(map(repr, repeated))}"
