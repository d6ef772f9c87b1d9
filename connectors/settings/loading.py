"""Load a configuration: ``[section] key`` of the file is ``STREAMSVM_SECTION_KEY`` in the environment and
``section.key=value`` as a flag.  Flags override the environment, which overrides the file."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from ..records.formats.avro import SchemaError
from ..records.raw import UnusableTransform
from ..runtime.libraries import LibraryMissing
from .challengers import problems_of, read_challengers
from .contradictions import find_contradictions, lacking
from .kafka_section import read_section, with_files
from .layers import UnreadableFile, collect, read_file
from .opening import backend_of
from .sections import REMOVED, SECTIONS, ConfigError, Settings, refuse

_FOLDERS = (("log", "dir"), ("log", "schemas"), ("daemon", "state_dir"), ("labelling", "image_folder"))


def load(
    path: Path,
    environment: Mapping[str, str],
    overrides: Sequence[str] = (),
    *,
    log_must_exist: bool = False,
    with_model: bool = True,
    needs: Mapping[str, str] = MappingProxyType({}),
) -> Settings:
    """Read a configuration.

    Parameters
    ----------
    path
        The TOML file; its relative folders are relative to it.
    environment
        Environment variables.  Those of a known section count, such as ``STREAMSVM_MODEL_GAMMA``; a misspelt section
        is a problem.  Those that Kubernetes sets for a Service do not count.
    overrides
        Flags of the form ``section.key=value``.
    log_must_exist
        Whether it is a problem if the embedded log's folder is missing.
    with_model
        Whether to check the values of [model], which loads the engine; without, only their types are checked.
    needs
        What the caller needs, such as ``log.labels`` or ``daemon.start = "earliest"``, and what is said if these
        settings lack it; default: nothing.

    Raises
    ------
    ConfigError
        With every problem at once; with one alone if the file cannot be read, since the rest depends on it.
    """
    try:
        content = read_file(path)
    except UnreadableFile as error:
        raise ConfigError(str(error)) from error
    unchecked = () if with_model else ("model",)
    challengers = content.pop("challenger", [])
    values, problems = collect(SECTIONS, path, content, environment, overrides, "kafka", REMOVED, unchecked)
    parts = {name: section(**values[name]) for name, section in SECTIONS.items()}
    for name, key in _FOLDERS:
        if (value := getattr(parts[name], key)) is not None:
            parts[name] = replace(parts[name], **{key: path.parent / value})
    own = read_challengers(str(path), challengers, parts["model"], problems, is_checked=with_model)
    settings = Settings(**parts, challenger=own)
    if "kafka" in values:
        given = with_files(values["kafka"], path.parent, problems)
        settings = replace(settings, kafka={key: item.value for key, item in given.items()})
        if given:
            options, wrong = read_section(given, settings)
            settings = replace(settings, kafka=options)
            problems += wrong
        else:
            problems.append(
                f"{path}: [kafka] is empty: set kafka.bootstrap_servers, such as 'localhost:9092', or remove the "
                "section to use the embedded log"
            )
    features = settings.features
    if (features.transform or features.embed) and (folder := str(path.parent.resolve())) not in sys.path:
        sys.path.append(folder)
    problems += find_contradictions(settings)
    if with_model:
        is_multiclass = settings.label.vocabulary is not None
        problems += [*settings.model.problems(is_multiclass), *problems_of(own, is_multiclass)]
    problems += lacking(settings, needs)
    try:
        settings.codec()
    except (LibraryMissing, SchemaError) as error:
        problems.append(f"log.format = {settings.log.format!r}: {error}")
    except UnusableTransform as error:
        problems.append(str(error))
    if features.embed and not problems:
        try:
            features.records()
        except (ImportError, TypeError, ValueError) as error:
            problems.append(f"features.embed: {error}")
    if log_must_exist and "kafka" not in values and (absence := backend_of(settings).absence()):
        problems.append(absence)
    refuse(problems)
    return settings
