"""A pipeline of river in one snapshot: the snapshots of its steps, by name and in order."""

from collections.abc import Callable
from typing import Any

from river import compose

from streamsvm.core.saving import snapshot
from streamsvm.core.saving.snapshot import require

KIND = "Pipeline"


def packed(pipeline: Any) -> bytes:
    """A pipeline as a snapshot; a TypeError names a step that cannot be saved."""
    if not isinstance(pipeline, compose.Pipeline):
        given = f"{' '.join(repr(pipeline).split()):.60} ({type(pipeline).__name__})"
        raise TypeError(f"{given} is neither a model of streamsvm nor a pipeline of river")
    for name, step in pipeline.steps.items():
        if not hasattr(step, "save"):
            raise TypeError(
                f"step {name!r} is a {type(step).__name__}, which a snapshot cannot hold: save the pipeline of the "
                f"other steps, and put this one before it again after `load`"
            )
    blobs = {str(name): step.to_bytes() for name, step in pipeline.steps.items()}
    return snapshot.pack(KIND, {"steps": [*blobs]}, blobs)


def unpacked(found: snapshot.Opened, read: Callable[[snapshot.Opened], Any]) -> compose.Pipeline:
    """The pipeline that `packed` packed; `read` makes a step of its snapshot."""
    meta, arrays = found.of(KIND)
    with snapshot.reading(KIND):
        names = snapshot.field(meta, "steps", list)
        require(sorted(names) == sorted(arrays) and len(names) > 0, "the steps")
        steps = [snapshot.opened(arrays[name].tobytes()) for name in names]
    require(all(step.kind != KIND for step in steps), "a pipeline in a pipeline")
    return compose.Pipeline(*((name, read(step)) for name, step in zip(names, steps, strict=True)))
