"""The axes of the report's pictures: they show what changes."""

import pytest

from streamsvm.connectors.report.charts import new_figure
from streamsvm.connectors.report.drawing import FIRST, draw_band, draw_curve, fit, new_axes


@pytest.fixture
def limits():
    """Draw values over 0, 1, 2, ...; return the ends of the vertical axis."""

    def limits(values, band=None, **options):
        axes = new_axes(new_figure(), "x", "y")
        x = list(range(len(values)))
        if band:
            draw_band(axes, x, *band)
        draw_curve(axes, x, values, FIRST, "", "-")
        fit(axes, **options)
        return axes.get_ylim()

    return limits


def test_values_within_two_points_fill_the_picture(limits):
    low, high = limits([60.0, *[11.0, 12.0] * 50])
    assert 10 < low < 11
    assert 12 < high < 13


def test_values_that_fall_by_half_begin_at_zero(limits):
    assert limits([40.0 - 0.2 * i for i in range(100)])[0] > 0
    assert limits([40.0 - 0.3 * i for i in range(100)])[0] == 0


def test_a_jump_after_the_beginning_is_inside(limits):
    assert limits([10.0] * 50 + [70.0] + [10.0] * 50)[1] > 70


def test_counts_begin_at_zero(limits):
    assert limits([0.0, *[200.0] * 99], zoom=False) == (0.0, 216.0)
    assert limits([0.0, *[200.0] * 99])[0] > 190


def test_the_interval_counts(limits):
    low, high = limits([80.0] * 40, band=([60.0] * 40, [95.0] * 40))
    assert low < 60
    assert high > 95


@pytest.mark.parametrize("values", [[], [0.0] * 30, [5.0] * 30, [1e300] * 30, [-3.0] * 30, [1e-320] * 30])
def test_odd_values_have_an_axis(limits, values):
    low, high = limits(values)
    assert low < high
