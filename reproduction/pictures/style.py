"""How all pictures of studies look: colors by family, sizes, files that are the same each time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from textwrap import wrap
from typing import Any

import numpy as np

from hirank._text import number
from reproduction.summary import Failed, Row

WIDTH = 9.6
"""Inches; at page width (some 850 pixels) letters of 10 points are 12 pixels high."""

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
    "svg.hashsalt": "hirank",  # names of elements, else different in each run
    "svg.fonttype": "path",
}

# Hues of Okabe and Ito, told apart by color-blind people; in a family by lightness and marker.
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
    """How a method is drawn."""

    color: str
    width: float
    marker: str
    dash: Any
    own: bool  # hirank's
    order: int

    @property
    def line(self) -> dict[str, Any]:
        """Arguments of `plot`."""
        return {
            "color": self.color,
            "linewidth": self.width,
            "linestyle": self.dash,
            "marker": self.marker,
            "markersize": 5 if self.own else 3.8,
            "markeredgewidth": 0,
            "zorder": 4 if self.own else 3,
        }


def looks(experiment: Any, rows: Sequence[Row]) -> dict[str, Look]:
    """How each method is drawn: those of the experiment in its order, then others of the rows."""
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
            # Shades run out, and hirank's are all dark: lines then differ by their dashes.
            dash=DASHES[(place if own else place // len(colors)) % len(DASHES)],
            own=own,
            order=len(found),
        )
    return found


@contextmanager
def styled() -> Iterator[None]:
    """Settings of matplotlib for pictures of studies; those before come back."""
    try:
        import matplotlib
    except ImportError as error:
        raise ImportError('Pictures need matplotlib: pip install "hirank[plot]"') from error
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(SETTINGS)
        yield


def figure(height: float, width: float = WIDTH) -> Any:
    """A new figure that pyplot does not know."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def grid_of(many: int, *, most: int = 3) -> tuple[int, int]:
    """Lines and columns for so many panels: (1, 3) for three, (2, 2) for four."""
    columns = min(many, 2 if many == 4 else most)
    return -(-many // columns), columns


def save(drawn: Any, stem: Path) -> list[Path]:
    """Write PNG and SVG; the same picture gives the same bytes."""
    paths = [stem.with_name(f"{stem.name}.{kind}") for kind in ("png", "svg")]
    drawn.savefig(paths[0], dpi=150, format="png")
    drawn.savefig(paths[1], dpi=150, format="svg", metadata={"Date": None})
    return paths


def spans_decades(values: Sequence[float]) -> bool:
    """Whether a logarithmic scale shows more."""
    x = np.asarray(values, np.float64)
    return bool(x.size and x.min() > 0 and x.max() > 30 * x.min())


def make_log(ax: Any, which: str, values: Sequence[float]) -> None:
    """A logarithmic scale; between powers of ten, too, numbers as people write them."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    getattr(ax, f"set_{which}scale")("log")
    axis = getattr(ax, f"{which}axis")
    wide = max(values) > 60 * min(values)
    # matplotlib would write 2 x 10^-1.
    axis.set_major_locator(LogLocator(subs=(1.0,) if wide else (1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: number(value)))
    axis.set_minor_formatter(NullFormatter())


def legend(drawn: Any, handles: Mapping[str, Any], **more: Any) -> None:
    """One for all panels, at the right."""
    if handles:
        place = {"loc": "outside right upper", "ncols": 1, "labelspacing": 0.55} | more
        drawn.legend(list(handles.values()), list(handles), **place)


def tell(drawn: Any, absent: Sequence[str], failed: Sequence[Failed]) -> None:
    """A line below the picture: methods without numbers, and runs that failed."""
    parts = [f"no numbers of {', '.join(absent)}"] if absent else []
    if failed:
        counts = ", ".join(f"{each.method} {each.failed} of {each.runs}" for each in failed)
        parts.append(f"failed runs, left out: {counts}")
    if parts:
        text = "; ".join(parts)
        # Wrapped by hand: matplotlib would not.
        lines = wrap(f"{text[0].upper()}{text[1:]}.", round(15 * drawn.get_figwidth()))
        drawn.supxlabel("\n".join(lines), fontsize=8.5, color="#555555", x=0.01, ha="left")


def wrapped(title: str, panels: int) -> str:
    """A title in as many lines as it needs above one of several panels."""
    return "\n".join(wrap(title, 84 // grid_of(panels)[1]))


def panel_title(name: str) -> str:
    """What a panel is called: patterns in words, the rest as it is."""
    return PATTERNS.get(name, name)
