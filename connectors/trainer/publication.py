"""Publishes models for the scorers, and reads the merged model."""

import logging
import time
from collections.abc import Iterator
from hashlib import blake2b
from typing import Any

from streamsvm.estimators.merging import differences
from streamsvm.export import to_json

from ..records.models import Model, Trained, pack_model, unpack_model
from ..records.published import Publisher, TooLarge, read_newest
from ..settings.opening import open_once
from ..settings.sections import Settings, refuse
from .state.models import ModelKind
from .state.state import State

logger = logging.getLogger(__name__)

JSON = "json-"  # what the name of a model as JSON begins with
MERGED = "merged"  # name of the one model that a merger makes of those of all partitions


def partition_name(number: int) -> str:
    """The name under which the single model of a partition is published."""
    return f"p{number}"


def challenger_name(number: int, challenger: str) -> str:
    """The name under which a challenger of a partition is published that answers a share of the events."""
    return f"{partition_name(number)}@{challenger}"


def key_name(key: bytes) -> str:
    """The name under which the model of a record key is published."""
    return f"k-{blake2b(key, digest_size=16).hexdigest()}"


def publish_models(publisher: Publisher, state: State, settings: Settings, number: int, epoch: int) -> tuple[int, int]:
    """Publish the models of a partition that have changed, and withdraw those that were dropped.

    Parameters
    ----------
    publisher
        Writes to the topic.
    state
        The partition's state.
    settings
        Whether each model is published as JSON, too, and what that calls the classes.
    number
        Number of the partition.
    epoch
        The epoch of the partition's owner: scorers take no model of an earlier one.

    Returns
    -------
    n_published, n_too_large
        Number of models that were published, and that were too large for it.
    """
    for gone in state.models.withdrawn():
        publisher.withdraw(key_name(gone))
        publisher.withdraw(JSON + key_name(gone))
    answering = {challenger_name(number, each.name) for each in state.challengers.with_share}
    for name in publisher.names:
        if name.removeprefix(JSON).startswith(challenger_name(number, "")) and name.removeprefix(JSON) not in answering:
            publisher.withdraw(name)
    n_published = n_too_large = 0
    names = [*reversed(settings.label.meanings)]  # the negative one first
    for name, by, served in _changed(state, number):
        meta: dict[str, Any] = {"epoch": epoch, "ver": state.version, "offset": state.offset, "created": time.time()}
        meta |= {"model": by} if by else {}
        try:
            publisher.publish(name, pack_model(served), meta)
            if settings.daemon.publish_json and (text := _json_of(served._replace(names=names), name)) is not None:
                publisher.publish(JSON + name, text.encode(), meta)
            n_published += 1
        except TooLarge as error:
            n_too_large += 1
            logger.error("partition %d: scorers keep the model that they have: %s", number, error)
    return n_published, n_too_large


def _changed(state: State, number: int) -> Iterator[tuple[str, str, Trained]]:
    """The models that have changed: the name of each in the topic, its own if several answer, and the model."""
    challengers = state.challengers
    by = challengers.serving if challengers.split else ""
    for key, _ in state.models.changed():
        name = partition_name(number) if key is None else key_name(key)
        trained = state.models.trained(key)
        yield name, by, trained._replace(made_by=trained.made_by or state.scaler)
    for each in challengers.with_share:
        for _ in each.models.changed():
            served = each.models.trained()._replace(made_by=state.records or state.scaler)
            yield challenger_name(number, each.name), each.name, served


def _json_of(served: Trained, name: str) -> str | None:
    """A model as JSON; None if it has learned too little or cannot be described."""
    if not served.model.n_support:
        return None
    try:
        return to_json(served.whole())
    except (TypeError, ValueError) as error:
        logger.warning("model %s is not published as JSON: %s", name, error)
        return None


def merged_model(settings: Settings, seconds: float) -> Model | None:
    """The newest merged model, to go on learning; None if there is none yet.

    Parameters
    ----------
    settings
        The configuration.
    seconds
        The longest time to read it.

    Raises
    ------
    ConfigError
        If its parameters differ from those of the settings.
    SnapshotError
        If it is damaged.
    Unavailable
        If it cannot be read in time.
    """
    with open_once(settings) as log:
        newest = read_newest(log, settings.log.merged, time.monotonic() + seconds).get(MERGED)
    if newest is None:
        return None
    merged: Any = unpack_model(newest.blob).model
    kind = ModelKind(settings.model, () if settings.label.vocabulary else None)
    problems = [
        f'daemon.begin = "merged": the merged model has {name} = {value!r}, the configuration says {wanted!r}'
        for name, value, wanted in differences(merged, kind.new())
    ]
    refuse(problems)
    return kind.read(merged.to_bytes()).model
