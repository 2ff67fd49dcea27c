"""The style of all figures: colors by family of methods, sizes, reproducible files."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from textwrap import wrap
from typing import Any

import numpy as np

from hirank._text import number
from reproduction.config import Experiment
from reproduction.summary import Row, count_failures

WIDTH = 9.6
"""Inches; at page width (about 850 pixels) letters of 10 points are 12 pixels high."""

SETTINGS: Any = {
    "font.size": 10,
    "axes.titlesize": 10.5,
    "axes.labelsize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#555555",
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#E3E3E3",
    "grid.linewidth": 0.7,
    "xtick.color": "#333333",
    "ytick.color": "#333333",
    "legend.frameon": False,
    "legend.fontsize": 9.5,
    "legend.handlelength": 2.4,
    "svg.hashsalt": "hirank",  # else names of elements would differ in each run
    "svg.fonttype": "path",
}

# Hues of Okabe and Ito, distinct for color-blind people; lightness and marker within a family.
FAMILIES: dict[str, tuple[str, ...]] = {
    "low rank": ("#E69F00", "#B36B00", "#F2C566", "#7A4A00"),
    "sparse": ("#CC79A7", "#8F3F6C"),
    "high rank": ("#56C2A0", "#006B4F"),
    "kernel": ("#56B4E9", "#9FD3F2"),
    "kernel, RBF": ("#005A94", "#003A63"),
    "simple": ("#9A9A9A", "#6B6B6B"),
    "hirank": ("#111111", "#111111", "#111111", "#111111"),
}
MARKERS = "os^vDPX"
DASHES = ("-", (0, (4, 1.5)), (0, (1, 1.2)), (0, (6, 1.5, 1, 1.5)))

_ESTIMATORS = {
    "KFMC": "kernel",
    "OnlineKFMC": "kernel",
    "Algorithm 1": "kernel",
    "OSE-KFMC": "kernel",
    "OSE-LRF": "low rank",
    "LRF": "low rank",
    "NNM": "low rank",
    "SoftImpute": "low rank",
    "OnlineLRF": "low rank",
    "GROUSE": "low rank",
    "DLSR": "sparse",
    "SFMC": "sparse",
    "GroupSparse": "sparse",
    "VMC": "high rank",
    "NLMC": "high rank",
}
PATTERNS = {
    "random": "entries missing at random",
    "gaps": "gaps: runs of entries missing",
    "per sample": "as many missing in each sample",
    "value-dependent": "large values missing more often",
}


@dataclass(frozen=True)
class Look:
    """The style of a method."""

    color: str
    width: float
    marker: str
    dash: Any
    own: bool  # hirank's
    order: int

    @property
    def line(self) -> dict[str, Any]:
        """Return arguments of `plot`."""
        return {
            "color": self.color,
            "linewidth": self.width,
            "linestyle": self.dash,
            "marker": self.marker,
            "markersize": 5 if self.own else 3.8,
            "markeredgewidth": 0,
            "zorder": 4 if self.own else 3,
        }


def make_looks(experiment: Experiment, rows: Sequence[Row]) -> dict[str, Look]:
    """Return the style of each method: those of the experiment in its order, then others."""
    known = {each.method.name: each.method for each in experiment.methods}
    sources = {row["method"]: row["source"] for row in rows}
    found: dict[str, Look] = {}
    used: dict[str, int] = {}
    for name in [*known, *(name for name in sources if name not in known)]:
        source = known[name].source if name in known else sources[name]
        kind = "simple"
        if source == "hirank":
            kind = "hirank"
        elif name in known:
            kind = _ESTIMATORS.get(known[name].estimator, "simple")
        if kind == "kernel" and known[name].settings.get("kernel") == "rbf":
            kind = "kernel, RBF"  # the same color in each experiment
        place = used.get(kind, 0)
        used[kind] = place + 1
        colors, own = FAMILIES[kind], kind == "hirank"
        found[name] = Look(
            color=colors[place % len(colors)],
            width=2.6 if own else 1.3,
            marker=MARKERS[(place if own else len(found)) % len(MARKERS)],
            # There are few shades, and hirank's are all dark: dashes differ then.
            dash=DASHES[(place if own else place // len(colors)) % len(DASHES)],
            own=own,
            order=len(found),
        )
    return found


@contextmanager
def use_style() -> Iterator[None]:
    """Apply the settings of matplotlib, and restore the previous ones afterwards."""
    try:
        import matplotlib
    except ImportError as error:
        raise ImportError('Figures require matplotlib: pip install "hirank[plot]"') from error
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(SETTINGS)
        yield


def make_figure(height: float, width: float = WIDTH) -> Any:
    """Return a new figure, without pyplot."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def grid_shape(count: int, *, max_columns: int = 3) -> tuple[int, int]:
    """Return rows and columns for `count` panels: (1, 3) for three, (2, 2) for four."""
    columns = min(count, 2 if count == 4 else max_columns)
    return -(-count // columns), columns


def save_figure(figure: Any, stem: Path) -> list[Path]:
    """Write PNG and SVG; equal figures have equal bytes."""
    paths = [stem.with_name(f"{stem.name}.{kind}") for kind in ("png", "svg")]
    figure.savefig(paths[0], dpi=150, format="png")
    figure.savefig(paths[1], dpi=150, format="svg", metadata={"Date": None})
    return paths


def spans_decades(values: Sequence[float]) -> bool:
    """Return whether values are better shown on a logarithmic scale."""
    x = np.asarray(values, np.float64)
    return bool(x.size and x.min() > 0 and x.max() > 30 * x.min())


def make_log(ax: Any, which: str, values: Sequence[float]) -> None:
    """Set a logarithmic scale, with plain numbers as labels, between powers of ten as well."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    getattr(ax, f"set_{which}scale")("log")
    axis = getattr(ax, f"{which}axis")
    wide = max(values) > 60 * min(values)
    # matplotlib would write 2 x 10^-1.
    axis.set_major_locator(LogLocator(subs=(1.0,) if wide else (1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: number(value)))
    axis.set_minor_formatter(NullFormatter())


def add_legend(figure: Any, handles: Mapping[str, Any], **more: Any) -> None:
    """Add one legend for all panels, at the right."""
    if handles:
        place = {"loc": "outside right upper", "ncols": 1, "labelspacing": 0.55} | more
        figure.legend(list(handles.values()), list(handles), **place)


def add_footnote(
    figure: Any, rows: Sequence[Row], wanted: Collection[str], shown: Collection[str]
) -> None:
    """Add a note below the figure: wanted methods that are not shown, and their failed runs."""
    absent = [name for name in wanted if name not in shown]
    failed = [each for each in count_failures(rows) if each.method in wanted]
    parts = [f"no numbers of {', '.join(absent)}"] if absent else []
    if failed:
        counts = ", ".join(f"{each.method} {each.failed} of {each.runs}" for each in failed)
        parts.append(f"failed runs, left out: {counts}")
    if parts:
        text = "; ".join(parts)
        # matplotlib does not wrap it.
        lines = wrap(f"{text[0].upper()}{text[1:]}.", round(15 * figure.get_figwidth()))
        figure.supxlabel("\n".join(lines), fontsize=8.5, color="#555555", x=0.01, ha="left")


def wrap_title(title: str, panels: int) -> str:
    """Wrap a title to the width of one of several panels."""
    return "\n".join(wrap(title, 84 // grid_shape(panels)[1]))


def panel_title(name: str) -> str:
    """Return the title of a panel: a description of a pattern, other names unchanged."""
    return PATTERNS.get(name, name)
