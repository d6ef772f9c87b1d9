"""The table and the picture."""

import sys
from dataclasses import replace

import numpy as np
import pytest

from streamsvm.connectors import daemon, report
from streamsvm.connectors.local_log import LocalLog
from streamsvm.connectors.settings import DaemonSettings, FeatureSettings, LogSettings, Settings

PNG = b"\x89PNG\r\n\x1a\n"


def finished(folder, names, n=200, scale="standard"):
    """A small finished run over features of these names, and what is needed to report it."""
    settings = Settings(
        log=LogSettings(dir=folder / "log"),
        features=FeatureSettings(warmup=20, scale=scale),
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


@pytest.mark.parametrize("names", [["a"], ["x1", "x2"], ["a", "b", "c"]])
@pytest.mark.parametrize("scale", ["standard", "none"])
def test_a_picture_is_drawn_for_any_number_of_features(tmp_path, names, scale):
    settings, state = finished(tmp_path, names, scale=scale)
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
    with pytest.raises(report.PlotMissing, match=r"pip install 'streamsvm\[plot\]'"):
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
