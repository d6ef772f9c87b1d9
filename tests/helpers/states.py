"""How a test reaches the state of a model, where no public name shows what it is after."""

from streamsvm.estimators.learner.state import State


def state_of(model) -> State:
    """The state of a learner; of one that is made of several, what these share."""
    return getattr(model, "_common", None) or model._state


def binaries_of(model) -> dict:
    """The models of several classes by their keys, as learners of their own."""
    return {key: model._binary(key) for key in model._models}
