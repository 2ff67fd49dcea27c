"""The report as one file: sections put into the page, with style and script inside."""

from __future__ import annotations

import os
import platform
import re
import tempfile
from base64 import b64encode
from collections.abc import Sequence
from contextlib import suppress
from hashlib import sha256
from html import escape
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from hirank.report import cells, sections
from hirank.report.facts import Facts, gather
from hirank.report.filled import filled_table
from hirank.report.markup import head, table

SECTIONS = (
    (
        "glance",
        "At a glance",
        "What came of it, in a few numbers.",
        sections.at_a_glance,
    ),
    (
        "missing",
        "What was missing",
        "Where the holes in the table are: at random, in whole columns, or in stretches of rows.",
        sections.missing,
    ),
    (
        "settings",
        "Settings chosen and why",
        "Several models were tried on entries whose true values are known; the best ones fill the "
        "table.",
        sections.settings,
    ),
    (
        "accuracy",
        "How good the fills are",
        "Observed entries were hidden, filled and compared with the truth: expect about this error "
        "at cells that are missing in the same way.",
        sections.accuracy,
    ),
    (
        "intervals",
        "Intervals",
        "A fill is a best guess; its interval says between which values the truth lies with a "
        "given probability.",
        sections.intervals,
    ),
    (
        "convergence",
        "Convergence",
        "Models are improved step by step until steps gain nothing more.",
        sections.convergence,
    ),
    (
        "doubts",
        "What not to trust",
        "Columns, rows and cells whose fills may be wrong: look at them before you use them.",
        cells.doubts,
    ),
    (
        "cells-section",
        "Filled cells",
        "The values that were filled in, to look up.",
        cells.preview,
    ),
)


def write_report(
    path: str | os.PathLike[str],
    model: Any,
    X: Any,
    filled: Any,
    *,
    names: Sequence[object] | None = None,
    title: str = "Completed table",
    interval: tuple[Any, Any] | None = None,
    coverage: float = 0.9,
    rows: Sequence[object] | None = None,
    notes: Sequence[str] = (),
) -> None:
    """Write a page about a completed table: what was missing, how good the fills are, and why.

    The page is one HTML file that needs no network. It is written to a temporary file first and
    renamed: there is never half a page.

    Parameters
    ----------
    path : str or path
        The file to write; one that is there is replaced.
    model : KFMC
        Fitted to X.
    X : array-like, n_samples x n_features
        The table with missing entries.
    filled : array-like, n_samples x n_features
        The table as completed: the result of ``fit_transform``. Columns without any value may be
        left out of it, and of the intervals; NaN is a cell that was not filled.
    names : list of str, optional
        Of the columns; by default those of X, else of the fit, else their numbers.
    title : str, default="Completed table"
    interval : (lower, upper), optional
        Ends of intervals, of the shape of `filled`: the result of ``model.interval(X)``.
    coverage : float, default=0.9
        Of these intervals; they are checked at hidden entries.
    rows : list, optional
        Labels of the rows; by default their numbers, from 0.
    notes : list of str
        Sentences to show below the title.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from hirank import KFMC
    >>> from hirank.report import write_report
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(40, 1)) * [1, 2, 3] + rng.normal(size=(40, 3)) / 4
    >>> X[::4, 1] = np.nan
    >>> model = KFMC(max_iter=20, random_state=0)
    >>> filled = model.fit_transform(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "report.html"
    ...     write_report(path, model, X, filled, interval=model.interval(X))
    ...     path.read_text(encoding="utf-8")[:15]
    '<!DOCTYPE html>'
    """
    if not 0 < coverage < 1:
        raise ValueError(f"coverage must be between 0 and 1, for instance 0.9; got {coverage!r}.")
    known = filled_table(model, X, filled, names, interval, rows)
    page = render(gather(model, known, coverage), model, title, notes)
    _write(Path(path), page)


def render(facts: Facts, model: Any, title: str, notes: Sequence[str]) -> str:
    """The page as text."""
    folder = files("hirank.report")
    template, style, script = (
        folder.joinpath(name).read_text(encoding="utf-8")
        for name in ("page.html", "style.css", "script.js")
    )
    # The browser runs this script and no other, whatever a table may contain.
    digest = b64encode(sha256(f"\n{script}".encode()).digest()).decode()
    contents = "".join(f'<li><a href="#{key}">{name}</a></li>' for key, name, *_ in SECTIONS)
    body = "\n".join(
        f'<section id="{key}" aria-labelledby="{key}-title"><h2 id="{key}-title">{name}</h2>'
        f'<p class="lead">{lead}</p>{draw(facts)}</section>'
        for key, name, lead, draw in SECTIONS
    )
    return Template(template).substitute(
        title=escape(title),
        style=style,
        script=script,
        digest=digest,
        version=escape(version("hirank")),
        notes="".join(f'<p class="lead">{escape(note)}</p>\n' for note in notes),
        contents=contents,
        sections=body,
        footer=_footer(model),
    )


def _footer(model: Any) -> str:
    """Versions, parameters, and how to get the same again."""
    used = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "scikit-learn"))
    parameters = [
        f"{head(name)}<td><code>{escape(_plain(value))}</code></td>"
        for name, value in sorted(model.get_params(deep=False).items())
    ]
    call = escape(f"from hirank import KFMC\n\nmodel = {_plain(model)}\n")
    again = escape("filled = model.fit_transform(table)\nprint(model.summary())")
    seed = (
        ""
        if model.random_state is not None
        else "<p>No <code>random_state</code> was given: another run hides other entries.</p>"
    )
    return (
        f"<p>Written by hirank {escape(version('hirank'))} with Python "
        f"{platform.python_version()}, {used}.</p><p>To reproduce:</p>"
        f"<pre>{call}{again}</pre>{seed}"
        f"<details><summary>All parameters</summary>"
        + table("Parameters of the model", ["Name", "Value"], parameters)
        + "</details><noscript><p>Searching, sorting and choosing a column need JavaScript; all "
        "else is here without it.</p></noscript>"
    )


def _plain(value: Any) -> str:
    """Its repr on one line, without addresses of objects in memory, and not without end."""
    text = re.sub(r" at 0x[0-9a-f]+", "", " ".join(repr(value).split()))
    return text if len(text) <= 500 else text[:499] + "\N{HORIZONTAL ELLIPSIS}"


def _write(path: Path, text: str) -> None:
    """All of it or nothing."""
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            # Lone halves of surrogate pairs can come from file names; they are no text.
            file.write(text.encode("utf-8", "replace").decode("utf-8"))
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


def _umask() -> int:
    """The permissions that new files of this process don't get; it can't be asked for alone."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
