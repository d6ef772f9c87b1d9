"""The report's page about a run, from its state folder: one HTML file that needs no other file and no network."""

import html
import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from importlib.resources import files
from pathlib import Path
from string import Template

import streamsvm
from streamsvm.core.saving import snapshot

from ..settings.opening import backend_of, open_once
from ..settings.sections import ConfigError, Settings
from ..trainer.state.checkpoint import reading
from ..trainer.state.stored_state import Stored, read_state
from .answers import Answers, read_answers
from .drawing import picture
from .panel import Panel, in_columns
from .panels import all_panels, asks, predicts_early, read_metrics, read_rows

_HIDDEN = ("daemon.per", "log.topic", "log.labels")  # settings that appear in other facts
_MODEL, _FEATURES = "model.", "features."


def write_report(folder: Path, path: Path | None = None, settings: Settings | None = None) -> tuple[Path, list[Stored]]:
    """Write the page.

    Parameters
    ----------
    folder
        The state folder (daemon.state_dir); its trainer may be running.
    path
        The file to write; None: report.html in the folder.
    settings
        The configuration of the run; its embedded log says how far the trainer is behind. None: this is left out.

    Returns
    -------
    tuple
        The file, and the partitions that the folder holds.

    Raises
    ------
    ConfigError
        If the folder holds no state.
    CheckpointError, SnapshotError
        If the state cannot be read.
    LibraryMissing
        If matplotlib is not installed.
    """
    stored = read_state(folder)
    path = folder / "report.html" if path is None else path
    ends, answers = ends_of(settings), None if settings is None else read_answers(settings)
    snapshot.write_atomic(path, page(folder, stored, ends, answers).encode())
    return path, stored


def ends_of(settings: Settings | None) -> dict[int, int]:
    """End offsets of the events now, by partition; empty without a configuration, and with a broker.

    Raises
    ------
    ConfigError
        If the log's folder does not exist.
    """
    if settings is None or not (backend := backend_of(settings)).is_local:
        return {}
    if absence := backend.absence():
        raise ConfigError(absence)
    with open_once(settings) as log:
        return log.end_offsets(settings.log.topic)


def page(
    folder: Path, stored: Sequence[Stored], ends: Mapping[int, int], answers: Mapping[int, Answers] | None = None
) -> str:
    """The page as HTML.

    Parameters
    ----------
    folder
        The state folder, whose name is shown.
    stored
        Its partitions, at least one.
    ends
        End offsets of the events now, by partition; some may be missing.
    answers
        Answers to the questions, by partition; some may be missing.  None: the log was not read.
    """

    def part(item: Stored) -> str:
        own = None if answers is None else answers.get(item.number, Answers())
        return _partition(item, ends.get(item.number), own)

    with reading(folder):
        parts = [_summary(stored), *map(part, stored)]
    topics = ", ".join(sorted({str(item.setting("log.topic")) for item in stored}))
    now = f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S}"
    return Template((files(__package__) / "page.html").read_text(encoding="utf-8")).substitute(
        title=html.escape(topics),
        subtitle=f"Contents of the state folder &ldquo;{html.escape(str(folder))}&rdquo; at {now} UTC.",
        version=html.escape(streamsvm.__version__),
        body="\n".join(parts),
    )


# --- parts ------------------------------------------------------------------------------------------------------------


def _summary(stored: Sequence[Stored]) -> str:
    scores = {item.number: read_metrics(item).summary() for item in stored}
    kinds = list(dict.fromkeys(kind for found in scores.values() for kind in found))
    rows = [_summary_row(item, {kind: scores[item.number].get(kind) for kind in kinds}) for item in stored]
    table = _table(
        [(*rows[0],), *((*row.values(),) for row in rows)], "Scores", [f"#p{item.number}" for item in stored]
    )
    said = html.escape(_caption(stored))
    return f'<section id="summary" class="card" aria-label="Summary"><p class="said">{said}</p>\n{table}</section>'


def _caption(stored: Sequence[Stored]) -> str:
    text = "Scores over all labelled events; each was predicted before it was learned."
    if not all(item.classes.are_two for item in stored):
        text += " F1 and kappa are those of the last events."
    if any(map(predicts_early, stored)):
        text += " They are left out where most labels are annotators' answers, which come long after the prediction."
    return text


def _summary_row(stored: Stored, scores: Mapping[str, float | None]) -> dict[str, str]:
    """A partition's cells, by column."""
    is_early = predicts_early(stored)
    rows = read_rows(stored)
    blob = stored.checkpoint.blobs.get("model")
    return {
        "stream": stored.name,
        "records": f"{stored.checkpoint.offsets['events']:,}",
        "labelled": f"{read_metrics(stored).n:,}",
        **{
            kind: "–" if is_early or score is None or math.isnan(score) else f"{score:.2%}"
            for kind, score in scores.items()
        },
        "support vectors": f"{_n_support(stored, rows[-1].n_support if rows else 0):,}",
        "model": "–" if blob is None else _size(len(blob)),
        "checkpoint": _size(stored.n_bytes),
    }


def _n_support(stored: Stored, recorded: int) -> int:
    """Support vectors of the model; with a model for each key, the recorded sum."""
    return stored.models.single.model.n_support if stored.models.single else recorded


def _partition(stored: Stored, end: int | None, answers: Answers | None) -> str:
    panels = all_panels(stored, end, answers)
    n_wide = 1 if asks(stored) else 0  # the progress of a labelling
    drawn = partial(_panel, part=f"p{stored.number}")
    columns = [f"<div>\n{''.join(map(drawn, column))}\n</div>" for column in in_columns(panels[n_wide:])]
    parts = [*map(drawn, panels[:n_wide]), f'<div class="panels">{"".join(columns)}</div>']
    run = f'<section class="card" id="p{stored.number}-run"><h3>The run</h3>\n{_list(_facts(stored))}</section>'
    parts.insert(len(parts) if asks(stored) else 0, run)  # who leads a labelling looks for other things first
    body = "\n".join(parts)
    return (
        f'<section class="partition" id="p{stored.number}" aria-labelledby="p{stored.number}-title">\n'
        f'<h2 id="p{stored.number}-title">{html.escape(stored.name)}</h2>\n{body}\n</section>'
    )


def _panel(panel: Panel, part: str) -> str:
    name = f"{part}-{panel.name}"
    text = "".join(f"<p>{html.escape(sentence)}</p>" for sentence in panel.text)
    head = f'<section class="card" id="{name}"><h3>{html.escape(panel.title)}</h3>'
    table = (_list(panel.facts) if panel.facts else "") + (_table(panel.table) if panel.table else "")
    if panel.plot is None:
        return f'{head}\n{table}<div class="said">{text}</div></section>'
    drawn = picture(panel.plot, name, panel.alt)
    return f'{head}\n<figure>{drawn}\n{table}<figcaption class="said">{text}</figcaption></figure></section>'


def _list(facts: Sequence[tuple[str, str]]) -> str:
    """Names and values."""
    rows = "\n".join(f"<dt>{html.escape(name)}</dt><dd>{html.escape(value)}</dd>" for name, value in facts)
    return f"<dl>\n{rows}\n</dl>\n"


def _table(rows: Sequence[Sequence[str]], label: str = "Table", links: Sequence[str] = ()) -> str:
    """A table whose first row is its header, and whose first column names the rows, maybe with links."""
    header = "".join(f'<th scope="col">{html.escape(cell)}</th>' for cell in rows[0])
    names = [html.escape(row[0]) for row in rows[1:]]
    names = [f'<a href="{link}">{name}</a>' for link, name in zip(links, names, strict=True)] if links else names
    body = "\n".join(
        f'<tr><th scope="row">{name}</th>{"".join(f"<td>{html.escape(cell)}</td>" for cell in cells)}</tr>'
        for name, (_, *cells) in zip(names, rows[1:], strict=True)
    )
    return (
        f'<div class="table" role="region" tabindex="0" aria-label="{label}"><table>\n'
        f"<thead><tr>{header}</tr></thead>\n<tbody>\n{body}\n</tbody></table></div>\n"
    )


def _facts(stored: Stored) -> list[tuple[str, str]]:
    """Names and values that identify the run."""
    checkpoint = stored.checkpoint
    given = {name: value for name, value in checkpoint.fingerprint.items() if value is not None and name not in _HIDDEN}
    offsets = f"events up to offset {checkpoint.offsets['events']:,}"
    if stored.setting("log.labels"):
        offsets += f", labels ({stored.setting('log.labels')}) up to {checkpoint.offsets['labels']:,}"
    written = datetime.fromtimestamp(stored.written, UTC)
    facts = [
        ("Model", _settings(given, _MODEL)),
        ("Features", _features(stored, given)),
        ("Partition", f"{stored.number} of topic {stored.setting('log.topic')}"),
        ("Consumed", offsets),
        ("Checkpoint", f"number {checkpoint.sequence}, written {written:%Y-%m-%d %H:%M:%S} UTC ({stored.path.name})"),
        ("Work", f"{checkpoint.counters.get('seconds', 0.0):,.1f} seconds, not counting the waiting"),
        *_models(stored),
    ]
    labels = [stored.setting(f"label.{name}") for name in ("positive", "negative")]
    if not stored.classes.are_two:
        facts.insert(2, ("Classes", f"{len(stored.classes)}: {', '.join(map(str, stored.classes.labels))}"))
    if labels[0] is not None:
        facts.insert(2, ("Labels", f"{labels[0]} (positive), {labels[1]} (negative)"))
    return facts


def _settings(given: Mapping[str, object], section: str) -> str:
    own = {name.removeprefix(section): _listed(value) for name, value in given.items() if name.startswith(section)}
    first = own.pop("algorithm", "")
    return ", ".join(filter(None, [first, *(f"{name} = {value}" for name, value in own.items() if value)]))


def _listed(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _features(stored: Stored, given: Mapping[str, object]) -> str:
    found = f"{len(stored.models.single.model.feature_names):,} known; " if stored.models.single else ""
    return f"{found}{_settings(given, _FEATURES) or 'any names'}"


def _models(stored: Stored) -> list[tuple[str, str]]:
    if stored.models.single:
        model = stored.models.single.model
        return [
            ("Members", f"{model.n_members:,}; {model.n_support:,} of them are support vectors"),
            ("Model digest", model.digest()),
        ]
    return [("Models", f"{len(stored.models):,}, one for each record key")]


def _size(n_bytes: int) -> str:
    if n_bytes < 10 * 2**20:
        return f"{n_bytes / 2**10:,.0f} KiB"
    return f"{n_bytes / 2**20:,.0f} MiB"
