"""The report as one file: the facts and pictures in a template, with style and script inside."""

from __future__ import annotations

import math
import platform
import re
from base64 import b64encode
from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from hirank._atomic import replace_file
from hirank._text import duration, number, percent, plural
from hirank._typing import PathLike
from hirank.estimators.imputer import Imputer
from hirank.report.facts import collect_facts, sort_by_largest
from hirank.report.pictures import draw_columns, draw_pictures
from hirank.report.table import make_table


def write_report(
    path: PathLike,
    model: Imputer,
    X: Any,
    filled: Any,
    *,
    names: Sequence[object] | None = None,
    title: str = "Imputed table",
    interval: tuple[Any, Any] | None = None,
    coverage: float = 0.9,
    rows: Sequence[object] | None = None,
    notes: Sequence[str] = (),
) -> None:
    """Write a page about an imputed table: what was missing, what was imputed, and its error.

    The page is one HTML file that makes no requests. It is complete at any time: a file at `path`
    is replaced when the new one has been written.

    Parameters
    ----------
    path : str or path
        The file to write.
    model : Imputer
        The model that was fitted to X.
    X : array-like, n_samples x n_features
        The table with missing values.
    filled : array-like, n_samples x n_features
        The imputed table: the result of ``fit_transform``. Columns without any value may be left
        out, here and in the intervals. NaN is a value that was not imputed.
    names : list of str, optional
        Names of the columns; by default those of X, else those of the fit, else their numbers.
    title : str, default="Imputed table"
    interval : (lower, upper), optional
        Ends of intervals, of the shape of `filled`: the result of ``model.interval(X)``.
    coverage : float, default=0.9
        Coverage of these intervals, which is checked at held-out entries.
    rows : list, optional
        Labels of the rows; by default their numbers, from 0.
    notes : list of str
        Sentences to show below the title.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from hirank import Imputer
    >>> from hirank.report import write_report
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(40, 1)) * [1, 2, 3] + rng.normal(size=(40, 3)) / 4
    >>> X[::4, 1] = np.nan
    >>> model = Imputer(max_iter=20, random_state=0)
    >>> filled = model.fit_transform(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "report.html"
    ...     write_report(path, model, X, filled, interval=model.interval(X))
    ...     path.read_text(encoding="utf-8")[:15]
    '<!DOCTYPE html>'
    """
    if not 0 < coverage < 1:
        raise ValueError(f"coverage must be between 0 and 1, for instance 0.9; got {coverage!r}.")
    facts = collect_facts(model, make_table(model, X, filled, names, interval, rows), coverage)
    environment = _environment()
    style, script = (_read(environment, name) for name in ("style.css", "script.js"))
    text = environment.get_template("page.html.j2").render(
        facts=facts,
        pictures=draw_pictures(model, facts),
        column_pictures=draw_columns(model, facts),
        title=title,
        notes=notes,
        style=style,
        script=script,
        # The browser runs this script and no other, whatever a table may contain.
        digest=b64encode(sha256(script.encode()).digest()).decode(),
        versions={name: version(name) for name in ("hirank", "numpy", "scipy", "scikit-learn")},
        python=platform.python_version(),
        estimator=type(model).__name__,
        call=_shorten(model),
        parameters={k: _shorten(v) for k, v in sorted(model.get_params(deep=False).items())},
    )
    with replace_file(path) as file:
        # Lone surrogates, which file names may contain, cannot be encoded.
        file.write(text.encode("utf-8", "replace"))


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("hirank.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "number": number,
        "percent": percent,
        "duration": duration,
        "plural": plural,
        "whole": "{:,}".format,
        "exact": lambda value: "" if math.isnan(value) else f"{value:.6g}",
        "largest": sort_by_largest,
    }
    environment.tests["finite"] = math.isfinite
    return environment


def _read(environment: Environment, name: str) -> Markup:
    """Return a file of the templates as it is."""
    assert environment.loader is not None
    return Markup(environment.loader.get_source(environment, name)[0])


def _shorten(value: object) -> str:
    """Return the representation of a value on one line, without addresses in memory."""
    text = re.sub(r" at 0x[0-9a-f]+", "", " ".join(repr(value).split()))
    return text if len(text) <= 500 else text[:499] + "\N{HORIZONTAL ELLIPSIS}"
