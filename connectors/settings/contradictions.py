"""Finds settings that contradict each other: a line for each problem."""

import re
from collections.abc import Callable, Iterable, Iterator
from importlib.util import find_spec
from typing import Any

from .opening import backend_of
from .sections import Settings

SEVERAL = ("auto", "mixture")  # algorithms of several models

_ERRORS_UNSEEN = (
    ": after the last label, errors would not be seen. labelling.max_fraction bounds the share of the events that are "
    "asked about"
)
_TERMS = ": on the topic beside it, the trainers note which model served when"
_SETTING = re.compile(r'(\w+)\.(\w+)(?: = "(\w+)")?')

_MEANINGS: dict[str, Callable[[Settings], object]] = {  # of what is not one setting
    "estimates.loo and estimates.folds": lambda settings: settings.estimates.loo or settings.estimates.folds,
    "more than two classes": lambda settings: settings.label.vocabulary is not None,
    "two classes": lambda settings: settings.label.vocabulary is None,
}

NEEDS = (  # what is given, what it needs, and why
    ("daemon.publish_json", "log.model", ", the topic of the models"),
    ('comparison.promote = "{}"', "log.control", _TERMS),
    ('daemon.begin = "merged"', "log.merged", ", the topic on which `streamsvm merger` publishes"),
    ('labelling.selection = "undecided"', "decide.error", ", which says what is decided"),
    ('labelling.selection = "undecided"', "labelling.audit", " above 0: otherwise errors would not be seen"),
    ("labelling.rare_first = true", "more than two classes", ": set label.classes or label.max_classes"),
    ('labelling.stop = "recall"', 'model.algorithm = "lasvm"', ", which can be solved without an example"),
    ('labelling.stop = "recall"', "two classes", ": it promises a share of the positives"),
    ('labelling.threshold = "{}"', 'model.algorithm = "lasvm"', ", which can be solved without an example"),
    ('labelling.threshold = "{}"', "two classes", ": with more, the most probable class is predicted"),
    ('log.format = "registry"', "schema.registry", ", its address, such as 'http://localhost:8081'"),
    ("log.merged", "log.model", ", the topic of the models that are merged"),
    ("log.merged", 'daemon.per = "partition"', ": models of different keys are not merged"),
    ("log.questions", "log.labels", ", the topic of the answers"),
    ("log.questions", 'daemon.per = "partition"', ": a model of each key would need its own labels"),
    ("log.state, the topic of the checkpoints,", 'state.store = "topic"', ""),
    ("schema.password", "schema.user", ""),
    ("schema.registry, the address of a schema registry,", 'log.format = "registry"', ""),
    ("schema.user", "schema.password", ", or STREAMSVM_SCHEMA_PASSWORD in the environment"),
    ('scorer.model = "merged"', "log.merged", ", the topic on which `streamsvm merger` publishes"),
    ('state.store = "objects"', "state.url", ", the place of the objects, such as 's3://bucket/prefix'"),
    ('state.store = "topic"', "log.state", ", the topic of the checkpoints"),
    ("state.url, the place of the objects,", 'state.store = "objects"', ""),
)
EXCLUDES = (  # what is given, what it does not go with, and why
    ("daemon.publish_json", "features.embed", ": no other program has the embedder"),
    ("daemon.publish_json", 'model.algorithm = "mixture"', ', which has no such form; use "auto"'),
    ("decide.error", "log.merged", ": a merged model has not seen its errors"),
    ("decide.error", 'model.algorithm = "mixture"', ', whose experts it does not know; use "auto"'),
    ("features.names", "features.raw", ", which takes records with any fields"),
    ("features.raw", 'log.format = "float32"', ", whose events are numbers"),
    ("features.transform", 'log.format = "float32"', ", whose events are numbers"),
    ("labelling.max_labels", 'labelling.selection = "undecided"', _ERRORS_UNSEEN),
    ('labelling.stop = "recall"', 'labelling.selection = "undecided"', ", which never stops"),
    ("labelling.threshold", 'labelling.selection = "undecided"', ": decisions are about the most probable label"),
    ('labelling.threshold = "{}"', "estimates.loo and estimates.folds", ", which test the sign of the decision value"),
    ("log.merged", "features.raw", ": the models of raw events are not merged"),
)


def find_contradictions(settings: Settings) -> list[str]:
    """Every contradiction in a configuration, except inside [kafka] and [model]."""
    return [
        *_pairs(settings),
        *_transactions(settings),
        *_topics(settings),
        *_embedded(settings),
        *_questions(settings),
        *_estimates(settings),
        *_features(settings),
        *_others(settings),
        *_classes(settings),
        *_challengers(settings),
    ]


def _pairs(settings: Settings) -> Iterator[str]:
    """What two settings contradict."""
    for given, needed, why in NEEDS:
        if (value := value_of(given, settings)) and not value_of(needed, settings):
            yield f"{given.format(value)} needs {needed}{why}"
    for given, other, why in EXCLUDES:
        if (value := value_of(given, settings)) and value_of(other, settings):
            yield f"{given.format(value)} does not go with {other}{why}"
    if settings.state.store == "objects" and not find_spec("obstore"):
        yield "state.store = \"objects\" needs obstore: pip install 'streamsvm[objects]'"
    if settings.model.algorithm == "mixture" and settings.log.questions:
        yield 'log.questions needs one model to ask about, and model.algorithm = "mixture" has experts; use "auto"'


def value_of(what: str, settings: Settings) -> Any:
    """The value of ``log.model``; whether the value is so in ``daemon.begin = "merged"``; or as `_MEANINGS` say."""
    if what in _MEANINGS:
        return _MEANINGS[what](settings)
    found = _SETTING.match(what)
    assert found
    value = getattr(getattr(settings, found[1]), found[2])
    return value if found[3] is None else value == found[3]


def _transactions(settings: Settings) -> Iterator[str]:
    if not settings.daemon.exactly_once:
        return
    timeout_ms, longest = settings.transaction_timeout_ms, settings.daemon.checkpoint_seconds
    if timeout_ms < 1500 * longest:  # A transaction ends with a checkpoint, and learning and writing delay that.
        yield (
            f"daemon.exactly_once with daemon.checkpoint_seconds = {longest:g} needs transactions of {1.5 * longest:g} "
            f"seconds at least, and kafka.transaction_timeout_ms is {timeout_ms}: write checkpoints more often, or "
            "raise it (and the broker's transaction.max.timeout.ms, which is 900000 by default)"
        )
    if settings.group.assign:
        yield "daemon.exactly_once needs a group, whose offsets are part of each transaction: remove group.assign"
    if settings.daemon.keep < 2:
        yield (
            "daemon.exactly_once needs daemon.keep = 2 or more: the newest checkpoint may belong to a transaction that "
            "was given up"
        )


def _topics(settings: Settings) -> Iterator[str]:
    repeated = _repeated(settings.topics())
    if settings.log.merged and settings.model.algorithm in SEVERAL:
        chosen = settings.model.algorithm
        yield f'log.merged needs one kind of model, and model.algorithm = "{chosen}" has several; choose another one'
    if repeated:
        yield f"the topics must differ; there is more than one {', '.join(map(repr, repeated))}"


def _embedded(settings: Settings) -> Iterator[str]:
    for name, given, lack in (
        ("group.instance", settings.group.instance, "no groups"),
        ("group.assign", settings.group.assign, "no groups"),
        ("daemon.exactly_once", settings.daemon.exactly_once, "no transactions"),
    ):
        if given and not backend_of(settings).has_groups:
            yield f"{name} needs a [kafka] section: the embedded log has {lack}"


def _questions(settings: Settings) -> Iterator[str]:
    labelling, model = settings.labelling, settings.model
    if labelling.threshold and model.threshold != 0.0:
        yield (
            f'labelling.threshold = "{labelling.threshold}" chooses the threshold: leave out model.threshold = '
            f"{model.threshold!r}"
        )
    if labelling.rare_first and labelling.selection not in ("mixed", "active", "all"):
        yield (
            f'labelling.rare_first does not go with labelling.selection = "{labelling.selection}"; use "mixed", '
            '"active" or "all"'
        )
    if settings.decide.error and settings.log.questions and labelling.selection != "undecided":
        yield (
            'decide.error with log.questions needs labelling.selection = "undecided": the promise needs the labels of '
            "all events that are not decided, and of random others"
        )


def _estimates(settings: Settings) -> Iterator[str]:
    is_wanted = settings.estimates.loo or settings.estimates.folds
    if is_wanted and settings.daemon.per == "key":
        yield 'estimates.loo and estimates.folds need daemon.per = "partition": they are estimates of one model'
    if is_wanted and settings.model.threshold != 0.0:
        yield "estimates.loo and estimates.folds need model.threshold = 0: they test the sign of the decision value"
    if is_wanted and settings.model.algorithm in SEVERAL:
        chosen = f'model.algorithm = "{settings.model.algorithm}"'
        yield f"estimates.loo and estimates.folds are estimates of one learner; {chosen} has several"
    if settings.log.estimates and not is_wanted:
        yield "log.estimates needs estimates.loo = true or estimates.folds = 2 or more"


def _classes(settings: Settings) -> Iterator[str]:
    label = settings.label
    if label.vocabulary is None:
        return
    if label.positive or label.negative:
        yield "label.positive and label.negative name two classes; leave them out beside label.classes"
    if label.vocabulary.limit < 3:
        yield (
            f"label.classes lists {len(label.classes)} of 3 classes or more: name two by label.positive and "
            "label.negative, or let others come by label.max_classes"
        )
    if label.max_classes and label.max_classes < len(label.classes):
        yield f"label.max_classes = {label.max_classes} is less than the {len(label.classes)} of label.classes"


def _challengers(settings: Settings) -> Iterator[str]:
    metric, are_two = settings.comparison.promote, settings.label.vocabulary is None
    needs = {
        "g-mean": (are_two, "two classes"),
        "cost": (are_two and settings.comparison.miss_cost != 1.0, "two classes, and comparison.miss_cost"),
        "decided": (settings.decide.error > 0.0, "decide.error"),
    }
    is_met, what = needs.get(metric, (True, ""))
    if not is_met:
        yield f'comparison.promote = "{metric}" needs {what}'
    if settings.log.control and not settings.challenger:
        yield "log.control, the topic of promotions, needs a [[challenger]]"
    if not settings.challenger:
        return
    if repeated := _repeated(challenger.name for challenger in settings.challenger):
        yield f"the names of challengers must differ; there is more than one {', '.join(map(repr, repeated))}"
    if (total := sum(challenger.share for challenger in settings.challenger)) > 1.0 + 1e-9:
        yield f"the shares of challengers add up to {total:g}, more than 1: share is a part of all events"
    if settings.daemon.per == "key":
        yield (
            '[[challenger]] needs daemon.per = "partition": it stands beside one model, and each key has its own. To '
            "try other models of the keys, run a second trainer with its own daemon.state_dir, log.predictions, "
            "log.dlq and group.id"
        )
    if settings.log.questions and settings.labelling.selection != "random":
        yield (
            f'[[challenger]] with log.questions needs labelling.selection = "random": with '
            f'"{settings.labelling.selection}", the model that serves chooses which labels are asked for, and a '
            "comparison on them is not fair"
        )
    if settings.log.control and settings.log.questions:
        yield (
            "log.control does not go with log.questions: the questions go on with the model of [model]. Instead of a "
            "promotion, write the better settings into [model], and begin with another daemon.state_dir"
        )
    if settings.log.merged and (settings.log.control or total):
        yield (
            f"{'log.control' if settings.log.control else 'challenger.share'} does not go with log.merged: the merger "
            "merges models of equal settings. Compare the challengers without it, then write the better settings into "
            "[model] of all trainers"
        )


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
    label = settings.label
    if (label.positive is None) != (label.negative is None) or (label.positive and label.positive == label.negative):
        yield "label.positive and label.negative must both be given, and differ"
    if settings.limits.event_features > settings.limits.model_features:
        yield "limits.event_features must not be larger than limits.model_features"
    repeated = _repeated(settings.features.names)
    if repeated:
        yield f"features.names repeats {', '.join(map(repr, repeated))}"


def _repeated(names: Iterable[str]) -> list[str]:
    given = list(names)
    return sorted({name for name in given if given.count(name) > 1})
