"""``hirank info``: print what a model file contains, without building the model; or versions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hirank._text import abbreviated, plural
from hirank._versions import collect_versions
from hirank.cli.reporter import Reporter
from hirank.estimators.summary import Summary
from hirank.io.errors import reading
from hirank.persistence.container import read_header

if TYPE_CHECKING:
    from hirank.cli.app import Info

MAX_GROUPS = 20
"""Groups of a stream that are described."""


@dataclass(frozen=True)
class ModelInfo:
    """The header of a model file."""

    path: Path
    size: int
    header: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Return the header, with the name and size of the file."""
        return {"file": self.path, "bytes": self.size, **self.header}

    def __str__(self) -> str:
        model: dict[str, Any] = self.header.get("model", {})
        names = abbreviated(model.get("feature_names") or (), 20)
        params = {k: v for k, v in model.get("params", {}).items() if v not in (None, "auto")}
        lines = [
            f"{self.path}: {model.get('class', 'model')}, format {self.header.get('format')}, "
            f"written by hirank {self.header.get('hirank')}, {self.size / 1e3:.0f} kB",
            f"features: {model.get('n_features_in')}" + (f" ({names})" if names else ""),
            "parameters: " + ", ".join(f"{name}={value!r}" for name, value in params.items()),
        ]
        if "stream" in model:
            lines += _describe_stream(model["stream"], model.get("feature_names"))
        summary = model.get("summary")
        return "\n".join([*lines, *(["", str(Summary(_restore_nan(summary)))] if summary else [])])


def run(options: Info, reporter: Reporter) -> None:
    """Read the header of a model file and print it; without a file, print versions."""
    if options.model is None:
        reporter.result(collect_versions())
        return
    with reading(options.model):
        header, size = read_header(options.model), options.model.stat().st_size
    reporter.result(ModelInfo(options.model, size, header))


def _describe_stream(facts: dict[str, Any], names: Sequence[str] | None) -> list[str]:
    """Return lines about rows seen, recent errors, and what has weight."""
    error, by_feature = facts["recent_error"], facts["feature_errors"]
    recent = "not known yet" if error is None else f"{error:g} (column mean = 1)"
    lines = [f"rows seen: {facts['rows']}; recent error: {recent}"]
    labels = names or [str(j) for j in range(len(by_feature))]
    known = [
        f"{name} {error:g}"
        for name, error in zip(labels, by_feature, strict=True)
        if error is not None
    ]
    if known:
        lines.append(f"recent error by feature: {abbreviated(known, 20)}")
    for where, weights in facts["weights"].items():
        shares = ", ".join(f"{what} {weight:.2f}" for what, weight in weights.items())
        lines.append(f"weights ({where}): {shares}")
    groups = facts.get("groups", {})
    if groups:
        newest = [_describe_group(label, one) for label, one in reversed(groups.items())]
        lines.append(f"groups: {len(groups)}, that with the newest row first:")
        lines += [f"  {one}" for one in newest[:MAX_GROUPS]]
        lines += ["  ..."] if len(newest) > MAX_GROUPS else []
    return lines


def _describe_group(label: str, facts: dict[str, Any]) -> str:
    """Return the rows of a group, and what has most weight in it."""
    text = f"{label}: {plural(facts['rows'], 'row')}"
    weights = facts.get("weights", {}).get("value in the row before")
    if not weights:
        return text
    first = sorted(weights.items(), key=lambda one: -one[1])[:2]
    return f"{text}; " + ", ".join(f"{what} {weight:.2f}" for what, weight in first)


def _restore_nan(value: Any) -> Any:
    """Return a value of JSON, which has no NaN, with NaN in place of null."""
    if isinstance(value, dict):
        return {key: _restore_nan(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_restore_nan(part) for part in value]
    return float("nan") if value is None else value
