"""``hirank info``: what a model file holds, without building the model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hirank.cli.reporter import Told
from hirank.estimators.summary import Summary
from hirank.persistence.container import read_header


def run(*, model: Path, as_json: bool) -> None:
    """Read the header and tell it."""
    header = read_header(model)
    Told(as_json=as_json).result(
        {"file": model, "bytes": model.stat().st_size, **header}, _words(model, header)
    )


def _words(path: Path, header: dict[str, Any]) -> str:
    told: dict[str, Any] = header.get("model", {})
    names = told.get("feature_names") or []
    lines = [
        f"{path}: {told.get('class', 'model')}, format {header.get('format')}, written by hirank "
        f"{header.get('hirank')}, {path.stat().st_size / 1e3:.0f} kB",
        f"features: {told.get('n_features_in')}"
        + (
            f" ({', '.join(map(str, names[:20]))}{', ...' if len(names) > 20 else ''})"
            if names
            else ""
        ),
    ]
    given = {k: v for k, v in told.get("params", {}).items() if v not in (None, "auto")}
    lines.append("parameters: " + ", ".join(f"{k}={v!r}" for k, v in given.items()))
    summary = told.get("summary")
    return "\n".join([*lines, *(["", str(Summary(_numbers(summary)))] if summary else [])])


def _numbers(value: Any) -> Any:
    """NaN again, which JSON can't say."""
    if isinstance(value, dict):
        return {key: _numbers(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_numbers(part) for part in value]
    return float("nan") if value is None else value
