"""The configuration of the app that a benchmark measures."""

import json
from pathlib import Path
from typing import Any

from streamsvm.connectors.settings.loading import load
from streamsvm.connectors.settings.sections import Settings

ONE_PARTITION = {"num_partitions": 1, "replication_factor": 1}
LARGE = {"max.message.bytes": str(16 << 20)}  # for the dead-letter topic, and for models


def app(folder: Path, name: str, topics: dict[str, str], **sections: dict[str, Any]) -> Settings:
    """Write NAME.toml and load it: an app of one partition that ends with its topics.

    Parameters
    ----------
    folder
        Where the file lies, and a folder with the checkpoint.
    name
        The file's name.
    topics
        The topics by their settings, such as ``labels``; ``topic``: that of the events.
    sections
        More settings.
    """
    given: dict[str, dict[str, Any]] = {
        "log": topics,
        "model": {"C": 1.0, "gamma": 0.05},
        "daemon": {"state_dir": str(folder / name / "state"), "follow": False},
    }
    if "kafka" in sections:
        given["group"] = {"assign": "0"}
    for section, values in sections.items():
        given[section] = given.get(section, {}) | values
    lines = []
    for section, values in given.items():
        lines += [f"[{section}]", *(f"{key} = {json.dumps(value)}" for key, value in values.items())]
    path = folder / f"{name}.toml"
    path.write_text("\n".join(lines) + "\n")
    return load(path, {})
