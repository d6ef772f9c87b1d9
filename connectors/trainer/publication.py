"""Models on their way to the scorers: their names on the topic log.model, and what is published."""

import logging
import time
from hashlib import blake2b

from ..records.published import Publisher, TooLarge, pack_model
from .state.state import State

logger = logging.getLogger(__name__)

MERGED = "merged"  # name of the one model that a merger makes of those of all partitions


def partition_name(number: int) -> str:
    """The name under which the single model of a partition is published."""
    return f"p{number}"


def key_name(key: bytes) -> str:
    """The name under which the model of a record key is published."""
    return f"k-{blake2b(key, digest_size=16).hexdigest()}"


def publish_models(publisher: Publisher, state: State, number: int, epoch: int) -> tuple[int, int]:
    """Publish the models of a partition that have changed, and withdraw those that were dropped.

    Parameters
    ----------
    publisher
        Writes to the topic.
    state, number
        The partition's state, and its number.
    epoch
        The epoch of the partition's owner: scorers take no model of an earlier one.

    Returns
    -------
    n_published, n_too_large
        Number of models that were published, and that were too large for it.
    """
    for gone in state.models.withdrawn():
        publisher.withdraw(key_name(gone))
    n_published = n_too_large = 0
    for key, model in state.models.changed():
        name = partition_name(number) if key is None else key_name(key)
        meta = {"epoch": epoch, "ver": state.version, "offset": state.offset, "created": time.time()}
        try:
            publisher.publish(name, pack_model(model, state.scaler, {}), meta)
            n_published += 1
        except TooLarge as error:
            n_too_large += 1
            logger.error("partition %d: scorers keep the model that they have: %s", number, error)
    return n_published, n_too_large
