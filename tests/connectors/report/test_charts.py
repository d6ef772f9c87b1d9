"""The table, the picture of a run, and that of a grid."""

import itertools
import sys
from dataclasses import replace

import numpy as np
import pytest
from river import metrics

from streamsvm import LASVM
from streamsvm.connectors.logs.embedded import LocalLog
from streamsvm.connectors.report import charts as report
from streamsvm.connectors.runtime.libraries import LibraryMissing
from streamsvm.connectors.settings.model import ModelSettings
from streamsvm.connectors.settings.sections import DaemonSettings, LogSettings, Settings
from streamsvm.connectors.trainer import trainer as daemon
from streamsvm.validation import grid_search

PNG = b"\x89PNG\r\n\x1a\n"


def finished(folder, names, n=200, scaling="standard"):
    """A small finished run over features of these names, and what is needed to report it."""
    settings = Settings(
        log=LogSettings(dir=folder / "log"),
        model=ModelSettings(scaling=scaling),
        daemon=DaemonSettings(batch=16, state_dir=folder / "state", follow=False),
    )
    rng = np.random.default_rng(0)
    with LocalLog(settings.log.dir) as log:
        for i in range(n):
            x = rng.normal(100.0, 5.0, size=len(names))
            pairs = ", ".join(f'"{name}": {value}' for name, value in zip(names, x, strict=True))
            log.produce("events", f'{{"id": {i}, "x": {{{pairs}}}, "y": {str(x[0] > 100).lower()}}}'.encode())
        log.produce("events", b"bad")
    return settings, daemon.run(settings)[0]


@pytest.mark.long
@pytest.mark.parametrize("names", [["a"], ["x1", "x2"], ["a", "b", "c"]])
@pytest.mark.parametrize("scaling", ["standard", "none"])
def test_a_picture_is_drawn_for_any_number_of_features(tmp_path, names, scaling):
    settings, state = finished(tmp_path, names, scaling=scaling)
    report.draw(settings, state, tmp_path / "run.png")
    assert (tmp_path / "run.png").read_bytes().startswith(PNG)


def test_the_boundary_is_in_the_features_own_coordinates(tmp_path, monkeypatch):
    from matplotlib.axes import Axes

    drawn = {}
    monkeypatch.setattr(Axes, "contour", lambda self, x, y, f, **_: drawn.update(x=x, y=y, f=f))
    settings, state = finished(tmp_path, ["x1", "x2"])
    report.draw(settings, state, tmp_path / "run.png")
    assert 75 < drawn["x"].min() < 95
    assert 105 < drawn["x"].max() < 125
    middle = drawn["f"][len(drawn["y"]) // 2]
    change = drawn["x"][np.flatnonzero(np.diff(middle > 0))]
    assert np.abs(change - 100).min() < 2


def test_a_run_too_short_for_a_curve_is_drawn(tmp_path):
    settings, state = finished(tmp_path, ["a", "b"], n=5)
    report.draw(settings, state, tmp_path / "run.png")
    assert (tmp_path / "run.png").exists()


def test_without_matplotlib_the_message_says_what_to_install(tmp_path, monkeypatch):
    settings, state = finished(tmp_path, ["a"])
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(LibraryMissing, match=r"pip install 'streamsvm\[plot\]'"):
        report.draw(settings, state, tmp_path / "run.png")


def test_the_table_is_aligned_and_leaves_unknown_numbers_out(tmp_path):
    _, state = finished(tmp_path / "a", ["a"])
    settings, _ = finished(tmp_path / "b", ["a"])
    one_class = daemon.run(replace(settings, daemon=replace(settings.daemon, state_dir=tmp_path / "other")))[0]
    one_class.metrics = type(one_class.metrics)(10)
    lines = report.table({"points": state, "a long name": one_class}).splitlines()
    assert len({len(line) for line in lines}) == 1
    assert lines[1].split()[:2] == ["points", "201"]
    assert lines[1].split()[-1] == state.model.digest()[:12]
    assert lines[2].split()[4:8] == ["-"] * 4


# --- grids ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def axes(monkeypatch):
    """The axes that are drawn on, as a list."""
    from matplotlib.figure import Figure

    drawn, real = [], Figure.add_subplot
    monkeypatch.setattr(Figure, "add_subplot", lambda *a, **k: drawn.append(real(*a, **k)) or drawn[-1])
    return drawn


def grid(Cs, gammas, **others):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    return grid_search(LASVM(), X, X[:, 0] * X[:, 1] > 0, Cs=Cs, gammas=gammas, refit=False, **others)


@pytest.mark.long
@pytest.mark.parametrize(
    ("Cs", "gammas"),
    [
        (10.0 ** np.arange(-3, 7), 10.0 ** np.arange(-3, 2)),
        (2.0 ** np.arange(-5, 16, 2), 2.0 ** np.arange(-15, 4, 2)),
        ([1.0, 3.0], [0.5]),
        ([1.0], [1.0]),
    ],
    ids=["10x5", "11x10", "2x1", "1x1"],
)
def test_a_heat_map_has_a_number_in_each_cell_and_overlaps_nowhere(tmp_path, axes, Cs, gammas):
    search = grid(Cs, gammas)
    report.draw_grid(search, tmp_path / "grid.png", "accuracy")
    assert (tmp_path / "grid.png").read_bytes().startswith(PNG)
    cells = {tuple(text.get_position()): text.get_text() for text in axes[0].texts}
    assert cells == {(c, r): f"{score:.3f}" for (r, c), score in np.ndenumerate(search.scores)}
    renderer = axes[0].figure.canvas.get_renderer()
    for texts in (axes[0].get_xticklabels(), axes[0].get_yticklabels(), axes[0].texts):
        boxes = [text.get_window_extent(renderer) for text in texts]
        assert not any(one.overlaps(other) for one, other in itertools.combinations(boxes, 2))
    frame = axes[0].lines[0]
    assert np.mean(frame.get_xdata()[:4]) == search.gammas.index(search.best.gamma)
    assert np.mean(frame.get_ydata()[:4]) == search.Cs.index(search.best.C)


def test_brighter_is_better_also_of_a_loss(tmp_path, axes):
    for metric in ("accuracy", metrics.LogLoss):
        search = grid([1.0, 10.0], [0.1, 1.0], metric=metric)
        report.draw_grid(search, tmp_path / "grid.svg")
        image = axes[-1].images[0]
        brightness = image.to_rgba(search.scores)[:, :, :3].sum(axis=-1)
        assert brightness.max() == brightness[search.Cs.index(search.best.C), search.gammas.index(search.best.gamma)]


def test_cells_without_a_score_are_drawn(tmp_path, axes):
    some = iter([np.nan, 0.5, 0.6] * 4)
    search = grid([1.0, 10.0], [0.1, 1.0], metric=lambda y, p: next(some), k=2)
    report.draw_grid(search, str(tmp_path / "grid.pdf"))
    assert {text.get_text() for text in axes[0].texts} == {"-", "0.550"}
    with pytest.warns(RuntimeWarning, match="no setting has a score"):
        none = grid([1.0, 10.0], [0.1, 1.0], metric=lambda y, p: np.nan)
    report.draw_grid(none, tmp_path / "none.png")
    assert {text.get_text() for text in axes[1].texts} == {"-"}


@pytest.mark.parametrize(
    ("values", "labels"),
    [
        ([0.001, 1.0, 10.0], ["10^-3", "10^0", "10^1"]),
        ([2**-15, 0.5, 8], ["2^-15", "2^-1", "2^3"]),
        ([1e-3 * 10**i for i in range(3)], ["10^-3", "10^-2", "10^-1"]),
        ([1.0, 3.0], ["1", "3"]),
        ([1000.0], ["1000"]),
    ],
)
def test_powers_are_labelled_as_powers(values, labels):
    assert report.axis_labels(values) == labels
