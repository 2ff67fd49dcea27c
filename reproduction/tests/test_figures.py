import re
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason='needs matplotlib: pip install "hirank[plot]"')

import matplotlib as mpl

from reproduction.figures import KINDS, draw, style
from reproduction.tests.synthetic_results import (
    CASES,
    EXPERIMENTS,
    OFFLINE,
    RECOVERY,
    TIMES,
    completion,
    row,
)


def small(figures=(RECOVERY,), **more):
    """Two panels, three methods."""
    methods = [OFFLINE[0], OFFLINE[5], OFFLINE[6]]
    return completion("small", methods, list(figures), **{"data": CASES[:2], "seeds": 2} | more)


def draw_one(experiment, rows, place=0):
    """Return the figure without writing it."""
    spec = experiment.figures[place]
    with style.use_style():
        return KINDS[spec["kind"]](experiment, rows, spec)


def texts(figure):
    """Return all text of a figure that is not on an axis."""
    footnote = [figure.get_supxlabel()] if hasattr(figure, "get_supxlabel") else []
    legend = [text.get_text() for each in figure.legends for text in each.get_texts()]
    return " ".join([*footnote, *legend])


@pytest.fixture(scope="module", params=EXPERIMENTS)
def shape(request):
    return EXPERIMENTS[request.param]()


def test_each_experiment_has_its_figures(shape):
    experiment, rows = shape
    for place in range(len(experiment.figures)):
        figure = draw_one(experiment, rows, place)
        panels = [ax for ax in figure.axes if ax.get_visible()]
        assert panels
        assert all(ax.has_data() for ax in panels)


@pytest.mark.parametrize("name", ["passes", "twisted-cubic", "missing-patterns"])
def test_the_same_rows_give_the_same_bytes(name, tmp_path):
    experiment, rows = EXPERIMENTS[name]()
    rows = [each for each in rows if each["method"] in ("KFMC", "hirank, window", "none")]
    experiment.figures = experiment.figures[:1]
    once = draw(experiment, rows, tmp_path / "once")
    # Settings of the user change nothing.
    with mpl.rc_context({"font.size": 20, "lines.linewidth": 9, "svg.hashsalt": "other"}):
        again = draw(experiment, rows, tmp_path / "again")
    assert [path.name for path in once] == [f"{name}-1.png", f"{name}-1.svg"]
    for first, second in zip(once, again, strict=True):
        assert first.read_bytes() == second.read_bytes()
    assert b"<dc:date>" not in once[1].read_bytes()
    assert once[0].read_bytes()[1:4] == b"PNG"


def test_settings_of_matplotlib_and_pyplot_are_left_alone(tmp_path):
    import matplotlib.pyplot as plt

    before, settings = plt.get_fignums(), dict(mpl.rcParams)
    draw(*EXPERIMENTS["passes"](), tmp_path)
    assert plt.get_fignums() == before
    assert dict(mpl.rcParams) == settings


def test_medians_are_what_is_draw_one():
    experiment, rows = small()
    figure = draw_one(experiment, rows)
    values = [
        r["value"]
        for r in rows
        if (r["method"], r["data"], r["measure"], r["rate"])
        == ("hirank", CASES[0], "relative error", 0.3)
    ]
    line = max(figure.axes[0].lines, key=lambda each: each.get_linewidth())
    at = list(line.get_xdata()).index(30.0)
    assert line.get_ydata()[at] == pytest.approx(np.median(values))
    assert line.get_color() == "#111111"


def test_each_combination_of_fields_has_a_panel():
    experiment, rows = small(patterns=["random", "gaps"])
    titles = [ax.get_title() for ax in draw_one(experiment, rows).axes]
    assert len(titles) == len(set(titles)) == 4
    assert any("gaps" in title and CASES[1] in title for title in titles)


def test_errors_over_decades_are_drawn_logarithmically_others_from_zero():
    experiment, rows = small()
    assert draw_one(experiment, rows).axes[0].get_yscale() == "log"
    close = [r | {"value": 0.2 + r["value"] / 10} for r in rows]
    ax = draw_one(experiment, close).axes[0]
    assert (ax.get_yscale(), ax.get_ylim()[0]) == ("linear", 0)
    later = [r | {"value": 3 * r["value"]} if r["data"] == CASES[1] else r for r in close]
    highest = max(r["value"] for r in later if r["measure"] == "relative error")
    assert draw_one(experiment, later).axes[0].get_ylim()[1] >= 0.9 * highest  # for both panels


def test_an_error_of_zero_does_not_break_the_scale():
    experiment, rows = small()
    rows = [r | {"value": 0.0} if r["rate"] == 0.1 else r for r in rows]
    assert draw_one(experiment, rows).axes[0].get_yscale() == "linear"


def test_absent_methods_and_failures_are_noted():
    experiment, rows = small([RECOVERY, TIMES])
    rows = [r for r in rows if r["method"] != "LRF"]
    rows[0] = rows[0] | {"failure": "Traceback\nMemoryError", "value": float("nan")}
    for place in range(2):
        figure = draw_one(experiment, rows, place)
        assert "LRF" in texts(figure)
        assert re.search(r"KFMC \(RBF\) 1 of \d+", texts(figure))


def test_a_method_that_always_fails_is_noted():
    experiment, rows = small()
    rows = [
        r | {"failure": "ValueError: no", "measure": "", "value": float("nan"), "selected": False}
        if r["method"] == "LRF"
        else r
        for r in rows
    ]
    assert "No numbers of LRF" in texts(draw_one(experiment, rows))


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_without_numbers_no_figure_is_written(name, tmp_path):
    experiment, _ = EXPERIMENTS[name]()
    assert draw(experiment, [], tmp_path) == []
    failed = [row(experiment, "LRF", "", float("nan"), failure="MemoryError")]
    assert draw(experiment, failed, tmp_path) == []


def test_an_unknown_kind_is_an_error(tmp_path):
    experiment, rows = small([{"kind": "pie"}])
    with pytest.raises(ValueError, match=r"must be one of lines, .*; got 'pie'"):
        draw(experiment, rows, tmp_path)


def test_curves_are_never_merged():
    experiment, rows = EXPERIMENTS["complexity"]()
    both = rows + [r | {"data": "another"} for r in rows]
    with pytest.raises(ValueError, match="Set data, patterns or rates"):
        draw_one(experiment, both)
    experiment.figures[0]["data"] = "another"
    assert draw_one(experiment, both).axes


def test_exponents_are_in_the_legend_of_growth():
    legend = texts(draw_one(*EXPERIMENTS["complexity"]()))
    assert "NLMC   3.0 | 1.8" in legend


def test_exponents_of_the_paper_are_beside_ours():
    experiment, rows = EXPERIMENTS["complexity"]()
    experiment.figures[0] |= {
        "paper_exponents": {"fit seconds": {"NLMC": "3"}},
        "x_label": "points of the dictionary r",
    }
    figure = draw_one(experiment, rows)
    assert "NLMC   3.0 (3) | 1.8" in texts(figure)
    assert figure.axes[0].get_xlabel() == "points of the dictionary r"
    assert "r³" in [text.get_text() for text in figure.axes[0].texts]


def test_an_axis_of_sizes_can_be_logarithmic():
    experiment, rows = EXPERIMENTS["passes"]()
    assert draw_one(experiment, rows).axes[0].get_xscale() == "linear"
    experiment.figures[0] |= {"log_x": True}
    assert draw_one(experiment, rows).axes[0].get_xscale() == "log"


def test_a_run_that_diverges_does_not_set_the_scale():
    experiment, rows = EXPERIMENTS["momentum"]()
    top = draw_one(experiment, rows).axes[0].get_ylim()[1]
    rows = [
        r | {"value": 1e100 if r["at"] > 200 and r["method"] == "poly, eta 0.9" else r["value"]}
        for r in rows
    ]
    figure = draw_one(experiment, rows)
    assert figure.axes[0].get_ylim()[1] < 4 * top
    assert any("diverge" in text.get_text() for text in figure.axes[0].texts)
    assert not figure.axes[1].texts
    assert figure.axes[1].get_ylim()[1] < 2 * top


def test_theory_is_marked_by_a_line_or_beyond_the_panel_by_text():
    figure = draw_one(*EXPERIMENTS["sampling-rate"]())
    first, second = figure.axes
    places = [line.get_xdata()[0] for line in first.lines if len(line.get_xdata()) == 2]
    assert places == pytest.approx([56, 91])
    assert any("145 %" in text.get_text() for text in second.texts)


def test_numbers_of_the_paper_are_shown_beside_ours():
    experiment, rows = EXPERIMENTS["mocap-time"]()
    figure = draw_one(experiment, rows)
    assert any("(paper 610)" in text.get_text() for text in figure.axes[0].texts)
    faster = [r | {"value": r["value"] / 100} for r in rows]  # then there is room between the two
    words = [text.get_text() for text in draw_one(experiment, faster).axes[0].texts]
    assert "610" in words
    assert not any("paper 610" in word for word in words)


def test_long_titles_are_wrapped_where_panels_are_narrow():
    title = "three quadratic surfaces, 1200 samples"
    assert style.wrap_title(title, 3) == "three quadratic surfaces,\n1200 samples"
    assert style.wrap_title(title, 2) == title


def test_with_one_method_the_panels_become_bars():
    experiment, rows = small([TIMES | {"methods": ["hirank"]}])
    (ax,) = draw_one(experiment, rows).axes
    assert [label.get_text() for label in ax.get_yticklabels()] == CASES[:2]
    assert ax.get_title() == "hirank"


def test_log_axes_have_plain_numbers(tmp_path):
    experiment, rows = small()
    figure = draw_one(experiment, rows)
    figure.savefig(tmp_path / "a.svg")
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert {"0.001", "0.01", "0.1"} <= set(labels)


def test_hirank_is_dark_and_thick_and_families_share_hues():
    experiment, rows = EXPERIMENTS["mocap"]()
    looks = style.make_looks(experiment, rows)
    own = [look for look in looks.values() if look.own]
    others = [look for look in looks.values() if not look.own]
    assert min(look.width for look in own) > max(look.width for look in others)
    assert {look.color for look in own} == {"#111111"}
    assert len({(look.color, look.marker, str(look.dash)) for look in looks.values()}) == len(looks)
    assert looks["GROUSE"].color in style.FAMILIES["low rank"]
    # Without (Poly) beside it, RBF is still the dark one.
    (alone,) = style.make_looks(SimpleNamespace(methods=experiment.methods[5:6]), []).values()
    assert alone.color == looks["KFMC (RBF)"].color


def test_missing_entries_are_black():
    experiment, rows = EXPERIMENTS["missing-patterns"]()
    one = [row(experiment, "none", "gap", 3, at=2.0, item=1), rows[-1] | {"pattern": "gaps"}]
    image = draw_one(experiment, one).axes[0].images[0].get_array()
    assert image.tolist() == [[0, 0, 0, 0, 0], [0, 0, 1, 1, 1]]


def test_points_outside_of_the_cube_are_counted():
    experiment, rows = EXPERIMENTS["twisted-cubic"]()
    titles = " ".join(ax.get_title() for ax in draw_one(experiment, rows).axes)
    far = sum(
        any(abs(v) > 1.25 for v in values)
        for values in zip(
            *(
                [
                    r["value"]
                    for r in rows
                    if (r["method"], r["measure"], r["rate"]) == ("LRMC", f"x{j}", 1 / 3)
                ]
                for j in (1, 2, 3)
            ),
            strict=True,
        )
    )
    assert f"LRMC\none entry removed ({far} points outside)" in titles
