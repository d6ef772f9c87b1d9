"""Converts between the configuration of a topic in Kafka and its shape."""

from collections.abc import Mapping

from ..transport import Shape


def shape_of(n_partitions: int, config: Mapping[str, str], *, is_default: bool) -> Shape:
    """The shape of a topic with this configuration; `is_default`: no part of it was ever set."""

    def number(name: str) -> int | None:
        return int(config[name]) if name in config else None

    sizes = number("retention.ms"), number("max.message.bytes")
    return Shape(n_partitions, config.get("cleanup.policy"), *sizes, bool(config) and is_default)


def config_of(shape: Shape) -> dict[str, str]:
    """The configuration of a topic that is to have this shape."""
    config = {"cleanup.policy": shape.cleanup, "retention.ms": shape.retention_ms, "max.message.bytes": shape.max_bytes}
    return {key: str(value) for key, value in config.items() if value is not None}
