"""The sections of the report as HTML, from its facts."""

from __future__ import annotations

from html import escape

import numpy as np

from hirank.report import figures
from hirank.report.facts import COUNTED, Facts, Feature
from hirank.report.markup import card, head, num, table, whole
from hirank.report.words import count, duration, number, percent


def at_a_glance(facts: Facts) -> str:
    """Numbers in large, and the verdict."""
    summary = facts.summary
    cells = facts.rows * facts.columns
    cards = [
        card("Table", f"{facts.rows:,} \N{MULTIPLICATION SIGN} {facts.columns:,}", "rows, columns"),
        card("Cells missing", f"{facts.n_missing:,}", f"{percent(facts.n_missing / cells)} of all"),
        card("Cells filled", f"{facts.n_filled:,}", _left(facts)),
    ]
    if summary["n_hidden"]:
        hidden = count(summary["n_hidden"], "hidden entry", "hidden entries")
        cards.append(card("Error of the fills", number(summary["error"]), f"at {hidden}"))
        if not np.isnan(summary["linear_error"]):
            linear = number(summary["linear_error"])
            cards.append(card("Best linear method", linear, "at the same entries"))
        cards.append(card("Column mean", "1", "by definition of the error"))
    if facts.covered is not None:
        wanted = f"of hidden entries; asked for {percent(facts.level)}"
        cards.append(card("Intervals hold", percent(facts.covered.share), wanted))
    cards.append(card("Time to learn", duration(summary["seconds"])))
    return (
        f'<p class="verdict">{escape(summary["verdict"])}</p><dl class="cards">{"".join(cards)}'
        "</dl>"
        + (
            '<p class="note">Error: some observed entries were hidden, filled, and compared with '
            "what they really were (root mean square, in units where filling in the column mean "
            "has error 1; 0 is perfect).</p>"
            if summary["n_hidden"]
            else ""
        )
    )


def _left(facts: Facts) -> str:
    left = facts.n_missing - facts.n_filled
    if left:
        return f"{left:,} left empty"
    return "all of them" if facts.n_missing else "nothing was missing"


def missing(facts: Facts) -> str:
    """The pattern, and the share of each column."""
    names = [one.name for one in facts.features]
    ranked = sorted(facts.features, key=lambda one: -one.missing)
    cells = facts.blocks.shape == (facts.rows, facts.columns)
    each = "" if cells else " Every block stands for several cells: the stronger, the more of them."
    rows = (
        f"{head(one.name)}{whole(one.missing)}"
        f'<td class="n" data-value="{one.share:.6g}">{percent(one.share)}</td>'
        f'<td class="b">{figures.bar(one.share, 1)}</td>'
        for one in ranked
    )
    return (
        f'<div class="pair"><figure>{figures.pattern(facts.blocks, names, facts.row_labels)}'
        f"{figures.legend_of_levels(cells=cells)}<figcaption>Missing cells are colored: rows from "
        f"top to bottom, columns from left to right.{each}</figcaption></figure>"
        + table(
            "Missing cells of each column, most first; the bars go to 100 %",
            ["Column", "Missing", "Share", ""],
            rows,
            numeric=(1, 2),
            sortable=True,
        )
        + "</div>"
    )


def settings(facts: Facts) -> str:
    """The candidates, and what they cost."""
    reason = f"<p>{escape(facts.summary['stop_reason'])}</p>"
    if not facts.candidates:
        return reason + "<p>Nothing was to be chosen: one model with the settings below.</p>"
    finite = [one.error for one in facts.candidates if np.isfinite(one.error)]
    most = max(finite, default=1.0)
    rows = []
    for one in facts.candidates:
        what = escape(one.settings or ("failed" if one.failure else ""))
        told = f'<br><span class="note">failed: {escape(one.failure)}</span>' if one.failure else ""
        weight = percent(one.weight) if one.weight else "\N{EN DASH}"
        rows.append(
            f'{head(one.name)}<td class="s">{what}{told}</td>{num(one.error, even=True)}'
            f'<td class="b">{figures.bar(one.error, most)}</td>'
            f'<td class="n" data-value="{one.weight:.6g}">{weight}</td>'
            f"{num(one.seconds, even=True)}"
        )
    shown = table(
        "All candidates, best first; the fills are the weighted mean of those with a weight",
        ["Candidate", "Settings", "Error", "", "Weight", "Seconds"],
        rows,
        numeric=(2, 4, 5),
        strong=[i for i, one in enumerate(facts.candidates) if one.weight],
        sortable=True,
    )
    kinds = [one.name for one in facts.candidates]
    words = "; ".join(f"{kind}: {GLOSSARY[kind]}" for kind in GLOSSARY if kind in kinds)
    note = (
        '<p class="note">This error is the geometric mean of the mean absolute and the root mean '
        f"square error in scaled features. {escape(words)}.</p>"
    )
    return reason + shown + note


GLOSSARY = {
    "linear": "one Gaussian, like regression on the other columns",
    "locally linear": f"a mixture of {COUNTED['locally linear']}, each good for a part of the rows",
    "low rank": "every row is a mix of a few typical ones",
    "kernelized": "rows lie near a curved surface through a dictionary of points",
}


def accuracy(facts: Facts) -> str:
    """Errors of each feature, and predicted against true values."""
    if not facts.summary["n_hidden"]:
        return f"<p>{escape(facts.summary['verdict'])}</p>"
    ranked = sorted(
        (one for one in facts.features if one.n_hidden or one.missing),
        key=lambda one: -np.nan_to_num(one.error, nan=-1),
    )
    most = 1.1 * max(1.0, *(np.nan_to_num([(f.error, f.linear_error) for f in ranked]).ravel()))
    most = min(most, 2.0)  # one very bad feature must not make the others vanish
    rows = (
        f"{head(one.name)}{num(one.error, even=True)}{num(one.linear_error, even=True)}"
        f'<td class="b">{figures.bar(one.error, most, tick=one.linear_error, line=1.0)}</td>'
        f"{whole(one.n_hidden)}"
        for one in ranked
    )
    legend = (
        '<ul class="legend"><li><svg width="22" height="16" aria-hidden="true"><rect class="own" '
        'y="3" width="22" height="10" rx="1"/></svg> this model (bar)</li><li><svg width="16" '
        'height="16" viewBox="-8 -8 16 16" aria-hidden="true"><path class="linear" '
        'd="M0-6L5 0L0 6L-5 0Z"/></svg> best linear method (diamond)</li><li><svg width="8" '
        'height="16" aria-hidden="true"><line class="mean" x1="4" x2="4" y2="16"/></svg> column '
        "mean = 1 (dashed line)</li></ul>"
    )
    shown = table(
        "Error at hidden entries of each column, worst first (column mean = 1)",
        ["Column", "Error", "Linear", "", "Hidden"],
        rows,
        numeric=(1, 2, 4),
        sortable=True,
    )
    return f'<div class="pair"><div>{shown}{legend}</div><div>{_scatters(facts)}</div></div>'


def _scatters(facts: Facts) -> str:
    """One picture for all columns together, shown at first, and one for each."""
    options = ['<option value="all">all columns together</option>']
    plain = "Hidden entries: what they were, and what was filled in. On the line both agree."
    overall = figures.scatter(
        facts.overall,
        "true value (standard deviations)",
        "filled in",
        "Filled in against true values of all columns, in standard deviations",
    )
    parts = [
        f'<figure data-feature="all">{overall}<figcaption>{plain} All columns, each in standard '
        "deviations from its mean.</figcaption></figure>"
    ]
    for j, points in facts.points.items():
        name = facts.features[j].name
        options.append(f'<option value="{j}">{escape(name)}</option>')
        picture = figures.scatter(
            points, "true value", "filled in", f"Filled in against true values of {name}"
        )
        parts.append(
            f'<figure data-feature="{j}" hidden>{picture}<figcaption>{plain} Column '
            f"{escape(name)}.</figcaption></figure>"
        )
    chooser = (
        '<div class="controls needs-script" hidden><label for="feature">Column</label> '
        f'<select id="feature">{"".join(options)}</select></div>'
    )
    return chooser + "".join(parts)


def intervals(facts: Facts) -> str:
    """Widths, and how often hidden entries lie within."""
    parts = []
    if facts.covered is not None:
        parts.append(
            f"<p>Of {len(facts.covered.inside):,} hidden entries <strong>"
            f"{percent(facts.covered.share)}</strong> lie in their intervals; "
            f"{percent(facts.level)} should. Widths were learned at one half of the hidden entries "
            "and counted at the other, both ways.</p>"
        )
    else:
        parts.append("<p>Too few entries were hidden to check intervals, or none.</p>")
    if not facts.has_intervals:
        return "".join(parts) + "<p>No intervals were given to this report.</p>"
    ranked = sorted(
        (one for one in facts.features if one.filled),
        key=lambda one: -np.nan_to_num(one.width, nan=-1),
    )
    if not ranked:
        return "".join(parts) + "<p>Nothing was filled, so there are no intervals.</p>"
    most = max(1.0, *np.nan_to_num([one.width for one in ranked]))
    rows = (
        f"{head(one.name)}{num(one.width, even=True)}"
        f'<td class="b">{figures.bar(one.width, most)}</td>'
        f'<td class="n" data-value="{"" if np.isnan(one.coverage) else one.coverage}">'
        f"{_share(one)}</td>"
        for one in ranked
    )
    parts.append(
        table(
            "Mean width of the intervals of each column in its standard deviations, widest first, "
            "and the share of hidden entries that they hold",
            ["Column", "Width", "", "Holds"],
            rows,
            numeric=(1, 3),
            sortable=True,
        )
    )
    return "".join(parts)


def _share(one: Feature) -> str:
    return "\N{EN DASH}" if np.isnan(one.coverage) else percent(one.coverage)


def convergence(facts: Facts) -> str:
    """The objective over time, and what candidates cost."""
    parts = []
    if facts.stages:
        steps = max(int(stage["step"][-1]) for stage in facts.stages)
        parts.append(
            f"<figure>{figures.trace(facts.stages)}<figcaption>{count(steps, 'step')} in "
            f"{count(len(facts.stages), 'stage')}. Each piece of line is one stage of one "
            "candidate: it falls and levels off. Different pieces minimize different things, so "
            "that their heights do not compare.</figcaption></figure>"
        )
    if any(np.isfinite(one.error) for one in facts.candidates):
        kinds = [one.name for one in facts.candidates]
        parts.append(
            f"<figure>{figures.costs(facts.candidates)}{figures.legend_of_shapes(kinds)}"
            "<figcaption>What each candidate cost and how good it was: lower is better, further "
            "left is quicker.</figcaption></figure>"
        )
    if not parts:
        return "<p>There were no steps to record.</p>"
    return f'<div class="pair">{"".join(parts)}</div>'
