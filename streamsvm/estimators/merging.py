"""`merge`: one model from several that learned parts of a stream side by side; see `learner.merging` for how."""

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from streamsvm.estimators.learner.classifier import OnlineSVM
from streamsvm.estimators.learner.merging import merge as merge_states
from streamsvm.estimators.multiclass.merging import merge_classes
from streamsvm.estimators.multiclass.several import MulticlassSVM
from streamsvm.estimators.multiclass.tuned_classes import TunedClasses

Model = TypeVar("Model", bound=OnlineSVM | MulticlassSVM)
FREE = ("cache_mb", "device")  # parameters that change no result


def merge(models: Sequence[Model], *, renumber: bool = False) -> Model:
    """One model from several that learned parts of a stream side by side.

    The merged model is solved to the optimum over the members of all models, and over those examples of their
    reservoirs that it would get wrong otherwise.  Its error is close to that of one model that learned the whole
    stream, while the mean of the models' decision values can be far from it.  The models stay as they are.

    Parameters
    ----------
    models
        At least one model.  All are of one class: `LASVM` or another one of its family, or `OneVsRest` or `OneVsOne` of
        these.  They have the same parameters; only `cache_mb` and `device` may differ, and those of the first count.
    renumber
        Whether the merged model gives its examples new ids: 0, 1, and so on, model by model.  By default the examples
        keep their ids, so that `forget` and `relabel` still find them.  Then two models must not use the same id for
        different examples.

    Returns
    -------
    A model of the same class, finished.  It may go on learning.  Features have the order in which the models know them.

    Raises
    ------
    TypeError
        If the models are not of one class, or of a class that cannot be merged.
    ValueError
        If there is no model, if two have different parameters, or if an id names two examples.

    Notes
    -----
    An example that several models know under one id is there once.  If they know different labels for it, the label of
    the first model counts.  Running scales are pooled: means and deviations are those of all streams together, each as
    heavy as it is long.  With a `window` that counts examples, ages count back from the newest example of each model.

    With several classes, the models of each class or of each pair are merged.  They have no reservoirs.  The merged
    model knows the classes of all models.

    Merging takes about as long as learning the whole stream, or twice as long.

    References
    ----------
    [^1]: Graf, H. P., Cosatto, E., Bottou, L., Durdanovic, I., Vapnik, V., 2004. Parallel support vector machines: the
    cascade SVM. Advances in Neural Information Processing Systems 17.

    Examples
    --------
    >>> import numpy as np
    >>> from streamsvm import LASVM, merge
    >>> X = np.random.default_rng(0).normal(size=(600, 2))
    >>> y, ids = X[:, 0] > 0, np.arange(600)
    >>> parts = []
    >>> for own in (ids < 300, ids >= 300):
    ...     parts.append(LASVM())
    ...     parts[-1].learn_many(X[own], y[own], ids=ids[own])
    >>> model = merge(parts)
    >>> model.n_seen, model.forget(model.support_ids[0])
    (600, 1)
    """
    models = list(models)
    _require_alike(models)
    if isinstance(models[0], MulticlassSVM):
        return merge_classes(models, renumber=renumber)
    merged: Any = models[0].clone()
    states: list[Any] = [model._state for model in models]  # type: ignore[union-attr]
    merge_states(merged._state, states, renumber)
    return merged


def _require_alike(models: list[Any]) -> None:
    if not models:
        raise ValueError("merge needs at least one model; the list is empty")
    for model in models:
        if not isinstance(model, OnlineSVM | MulticlassSVM) or isinstance(model, TunedClasses):
            raise TypeError(
                f"{type(model).__name__} cannot be merged; LASVM and the others of its family can, alone or in "
                "OneVsRest or OneVsOne"
            )
        if type(model) is not type(models[0]):
            raise TypeError(f"{type(models[0]).__name__} and {type(model).__name__} cannot be merged into one model")
        for name, value, other in differences(models[0], model):
            raise ValueError(f"models with {name}={value!r} and {name}={other!r} cannot be merged into one")


def differences(model: Any, other: Any) -> Iterator[tuple[str, Any, Any]]:
    """The parameters in which two models differ, so that they cannot be merged, with both values."""
    if isinstance(model, MulticlassSVM) and isinstance(other, MulticlassSVM):
        yield from differences(model.model, other.model)
        return
    if type(model) is not type(other):
        yield "class", type(model).__name__, type(other).__name__
        return
    values = other._get_params()
    for name, value in model._get_params().items():
        if name not in FREE and values[name] != value:
            yield name, value, values[name]
