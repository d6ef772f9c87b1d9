"""Finds settings that contradict each other: a line for each problem."""

from collections.abc import Iterable, Iterator
from importlib.util import find_spec

from .opening import backend_of
from .sections import Settings

SEVERAL = ("auto", "mixture")  # algorithms of several models


def find_contradictions(settings: Settings) -> list[str]:
    """Every contradiction in a configuration, except inside [kafka] and [model]."""
    return [
        *_transactions(settings),
        *_topics(settings),
        *_state(settings),
        *_embedded(settings),
        *_questions(settings),
        *_decide(settings),
        *_estimates(settings),
        *_mixture(settings),
        *_schema(settings),
        *_features(settings),
        *_others(settings),
        *_classes(settings),
        *_challengers(settings),
    ]


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
    if settings.log.merged and not settings.log.model:
        yield "log.merged needs log.model, the topic of the models that are merged"
    if settings.daemon.publish_json and not settings.log.model:
        yield "daemon.publish_json needs log.model, the topic of the models"
    if settings.daemon.publish_json and settings.features.embed:
        yield "daemon.publish_json does not go with features.embed: no other program has the embedder"
    if settings.scorer.model == "merged" and not settings.log.merged:
        yield 'scorer.model = "merged" needs log.merged, the topic on which `streamsvm merger` publishes'
    if settings.daemon.begin == "merged" and not settings.log.merged:
        yield 'daemon.begin = "merged" needs log.merged, the topic on which `streamsvm merger` publishes'
    if settings.log.merged and settings.daemon.per == "key":
        yield 'log.merged needs daemon.per = "partition": models of different keys are not merged'
    if settings.log.merged and settings.model.algorithm in SEVERAL:
        chosen = settings.model.algorithm
        yield f'log.merged needs one kind of model, and model.algorithm = "{chosen}" has several; choose another one'
    if repeated:
        yield f"the topics must differ; there is more than one {', '.join(map(repr, repeated))}"


def _state(settings: Settings) -> Iterator[str]:
    store = settings.state.store
    is_on_topic = store == "topic"
    if is_on_topic and not settings.log.state:
        yield 'state.store = "topic" needs log.state, the topic of the checkpoints'
    if settings.log.state and not is_on_topic:
        yield 'log.state, the topic of the checkpoints, needs state.store = "topic"'
    if store == "objects" and not settings.state.url:
        yield "state.store = \"objects\" needs state.url, the place of the objects, such as 's3://bucket/prefix'"
    if settings.state.url and store != "objects":
        yield 'state.url, the place of the objects, needs state.store = "objects"'
    if store == "objects" and not find_spec("obstore"):
        yield "state.store = \"objects\" needs obstore: pip install 'streamsvm[objects]'"


def _embedded(settings: Settings) -> Iterator[str]:
    for name, given, lack in (
        ("group.instance", settings.group.instance, "no groups"),
        ("group.assign", settings.group.assign, "no groups"),
        ("daemon.exactly_once", settings.daemon.exactly_once, "no transactions"),
    ):
        if given and not backend_of(settings).has_groups:
            yield f"{name} needs a [kafka] section: the embedded log has {lack}"


def _questions(settings: Settings) -> Iterator[str]:
    if settings.log.questions and not settings.log.labels:
        yield "log.questions needs log.labels, the topic of the answers"
    if settings.log.questions and settings.daemon.per == "key":
        yield 'log.questions needs daemon.per = "partition": a model of each key would need its own labels'
    labelling = settings.labelling
    if labelling.threshold:
        yield from _threshold(settings)
    if labelling.stop == "recall":
        yield from _recall(settings)
    if labelling.rare_first and settings.label.vocabulary is None:
        yield "labelling.rare_first = true needs more than two classes: set label.classes or label.max_classes"
    if labelling.rare_first and labelling.selection not in ("mixed", "active", "all"):
        yield (
            f'labelling.rare_first does not go with labelling.selection = "{labelling.selection}"; use "mixed", '
            '"active" or "all"'
        )


def _decide(settings: Settings) -> Iterator[str]:
    labelling, is_undecided = settings.labelling, settings.labelling.selection == "undecided"
    if settings.decide.error and settings.log.questions and not is_undecided:
        yield (
            'decide.error with log.questions needs labelling.selection = "undecided": the promise needs the labels of '
            "all events that are not decided, and of random others"
        )
    if is_undecided and not settings.decide.error:
        yield 'labelling.selection = "undecided" needs decide.error, which says what is decided'
    if is_undecided and not labelling.audit:
        yield 'labelling.selection = "undecided" needs labelling.audit above 0: otherwise errors would not be seen'
    if is_undecided and labelling.max_labels:
        yield (
            'labelling.max_labels does not go with labelling.selection = "undecided": after the last label, errors '
            "would not be seen. labelling.max_fraction bounds the share of the events that are asked about"
        )
    if is_undecided and labelling.threshold:
        yield (
            'labelling.threshold does not go with labelling.selection = "undecided": decisions are about the most '
            "probable label"
        )
    if settings.decide.error and settings.log.merged:
        yield "decide.error does not go with log.merged: a merged model has not seen its errors"


def _threshold(settings: Settings) -> Iterator[str]:
    chosen = f'labelling.threshold = "{settings.labelling.threshold}"'
    if settings.label.vocabulary is not None:
        yield f"{chosen} needs two classes: with more, the most probable class is predicted"
    if settings.model.algorithm != "lasvm":
        yield f'{chosen} needs model.algorithm = "lasvm", which can be solved without an example'
    if settings.model.threshold != 0.0:
        yield f"{chosen} chooses the threshold: leave out model.threshold = {settings.model.threshold!r}"
    if settings.estimates.loo or settings.estimates.folds:
        yield f"{chosen} does not go with estimates.loo and estimates.folds, which test the sign of the decision value"


def _recall(settings: Settings) -> Iterator[str]:
    if settings.label.vocabulary is not None:
        yield 'labelling.stop = "recall" needs two classes: it promises a share of the positives'
    if settings.model.algorithm != "lasvm":
        yield 'labelling.stop = "recall" needs model.algorithm = "lasvm", which can be solved without an example'
    if settings.labelling.selection == "undecided":
        yield 'labelling.stop = "recall" does not go with labelling.selection = "undecided", which never stops'


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


def _mixture(settings: Settings) -> Iterator[str]:
    if settings.model.algorithm != "mixture":
        return
    if settings.decide.error:
        yield 'decide.error does not go with model.algorithm = "mixture", whose experts it does not know; use "auto"'
    if settings.log.questions:
        yield 'log.questions needs one model to ask about, and model.algorithm = "mixture" has experts; use "auto"'
    if settings.daemon.publish_json:
        yield 'daemon.publish_json does not go with model.algorithm = "mixture", which has no such form; use "auto"'


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
    if metric and not settings.log.control:
        yield (
            f'comparison.promote = "{metric}" needs log.control: on the topic beside it, the trainers note which model '
            "served when"
        )
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


def _schema(settings: Settings) -> Iterator[str]:
    schema = settings.schema
    if settings.log.format == "registry" and not schema.registry:
        yield "log.format = \"registry\" needs schema.registry, its address, such as 'http://localhost:8081'"
    if schema.registry and settings.log.format != "registry":
        yield 'schema.registry, the address of a schema registry, needs log.format = "registry"'
    if schema.user and not schema.password:
        yield "schema.user needs schema.password, or STREAMSVM_SCHEMA_PASSWORD in the environment"
    if schema.password and not schema.user:
        yield "schema.password needs schema.user"


def _features(settings: Settings) -> Iterator[str]:
    features, log = settings.features, settings.log
    if not features.raw:
        given = [
            name
            for name in ("id", "label", "time", "kinds", "indicators", "thousands", "width", "embed")
            if name in features.given()
        ]
        if given:
            yield f"{', '.join(f'features.{name}' for name in given)}: raw events have this; set features.raw = true"
        if features.transform and log.format == "float32":
            yield 'features.transform does not go with log.format = "float32", whose events are numbers'
        return
    if features.names:
        yield "features.names does not go with features.raw, which takes records with any fields"
    if log.format == "float32":
        yield 'features.raw does not go with log.format = "float32", whose events are numbers'
    if log.merged:
        yield "log.merged does not go with features.raw: the models of raw events are not merged"
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
