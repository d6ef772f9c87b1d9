"""Events as rows of features, in the coordinates of the model that is concerned."""

from streamsvm import WarmupScaler
from streamsvm.estimators.classifier import OnlineSVM

from ..records.formats.base import BadRecord

Features = dict[str, float]


def usable_many(rows: list[Features], scaler: WarmupScaler | None, model: OnlineSVM) -> list[Features | BadRecord]:
    """The features of events in the model's coordinates; for an event that the model cannot learn, the reason."""
    scaled = scaler.transform_many(rows) if scaler else rows
    try:
        model.validate_many(scaled)
    except ValueError:
        return [_usable(x, model) for x in scaled]
    return [*scaled]


def _usable(x: Features, model: OnlineSVM) -> Features | BadRecord:
    try:
        model.validate_one(x)
    except ValueError as error:
        return BadRecord("bad-feature", f"after scaling, {error}")
    return x


def by_entity(entities: list[bytes | None]) -> dict[bytes | None, list[int]]:
    """Places by entity, each in order."""
    if entities and entities.count(entities[0]) == len(entities):
        return {entities[0]: list(range(len(entities)))}
    places: dict[bytes | None, list[int]] = {}
    for i, entity in enumerate(entities):
        places.setdefault(entity, []).append(i)
    return places
