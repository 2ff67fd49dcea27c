"""Experiments, as they are configured in `experiments/NAME/config.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from inspect import signature
from itertools import product
from pathlib import Path
from typing import Any

from reproduction.cells import SOURCES, Method
from reproduction.data import PATTERNS, TABLES
from reproduction.methods import ESTIMATORS

FILE = "config.toml"
FIRST_TRIAL, EVERY_TRIAL = "first trial", "every trial"
SEARCHES = (FIRST_TRIAL, EVERY_TRIAL)
"""Where grids of settings are searched: in the first trial for all, or in each for itself."""


class ConfigError(ValueError):
    """The file of an experiment is invalid."""


@dataclass(frozen=True)
class Entry:
    """A method of an experiment, with a grid of settings."""

    method: Method
    grid: dict[str, list[Any]] = field(default_factory=dict)
    data: tuple[str, ...] = ()  # only these tables; empty: all
    settings_for: dict[str, dict[str, Any]] = field(default_factory=dict)  # by table
    max_size: int | None = None  # only sizes up to this one

    def runs_on(self, data: str, size: int | None) -> bool:
        """Return whether the method runs on a table, and at a size (None: no size varies)."""
        small = size is None or self.max_size is None or size <= self.max_size
        return small and (not self.data or data in self.data)

    def variants(self, data: str) -> list[Method]:
        """Return the method with each combination of settings, as it runs on a table."""
        settings = {**self.method.settings, **self.settings_for.get(data, {})}
        grid = {name: values for name, values in self.grid.items() if name not in settings}
        points = [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]
        return [replace(self.method, settings={**settings, **point}) for point in points]


@dataclass(frozen=True)
class Experiment:
    """One figure or table of the paper."""

    name: str
    title: str
    shows: str  # which figure or table
    task: str
    data: tuple[str, ...]
    methods: tuple[Entry, ...]
    patterns: tuple[str, ...] = ("random",)
    rates: tuple[float, ...] = (0.0,)
    seeds: int = 1  # trials
    sizes: tuple[int, ...] = ()  # numbers of rows, or of what `along` names, where that varies
    along: str = "n"  # the option of a cell that holds its size
    tune_by: str = "missing error"
    search: str = FIRST_TRIAL  # one of SEARCHES
    reuse: tuple[str, ...] = ()  # other experiments in whose tables equal cells are looked up
    options: dict[str, Any] = field(default_factory=dict)
    figures: tuple[dict[str, Any], ...] = ()
    claims: tuple[dict[str, Any], ...] = ()
    expected: tuple[dict[str, Any], ...] = ()
    quick: bool = False


SECTIONS = {"method": "methods", "figure": "figures", "claim": "claims"}
"""Repeated sections of the file, and the fields of the record that hold them."""
TUPLES = {"data", "patterns", "rates", "sizes", "figures", "claims", "expected", "reuse"}
KEYS = {f.name for f in fields(Experiment)} - {"name", "quick", *SECTIONS.values()} | {*SECTIONS}
METHOD_KEYS = {f.name for f in fields(Entry)} - {"method"} | {f.name for f in fields(Method)}
QUICK_KEYS = {"data", "patterns", "rates", "seeds", "sizes", "options", "methods"}
QUICK_KEYS |= {"estimators", "settings"}  # by method


def list_names(folder: Path) -> list[str]:
    """Return the names of the experiments in a folder."""
    return sorted(file.parent.name for file in folder.glob(f"*/{FILE}"))


def load(folder: Path, name: str, *, quick: bool = False) -> Experiment:
    """Read an experiment; `quick` is a small version of it that runs in seconds."""
    path = folder / name / FILE
    if not path.exists():
        known = ", ".join(list_names(folder)) or "none"
        raise ConfigError(f"There is no experiment {name!r} in {folder}; available: {known}.")
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: {error}.") from error
    try:
        return _make_experiment(name, content, quick)
    except (ConfigError, TypeError, KeyError) as error:
        raise ConfigError(f"{path}: {error}") from error


def _make_experiment(name: str, content: dict[str, Any], quick: bool) -> Experiment:
    small = content.pop("quick", {})
    _check_known("setting", content, KEYS)
    _check_known("setting of [quick]", small, QUICK_KEYS)
    entries = [_make_entry(one) for one in content.pop("method", [])]
    if len({entry.method.name for entry in entries}) < len(entries):
        raise ConfigError("two methods have the same name.")
    if quick:
        entries = _select_quick(entries, small)
        content.update(small)
    content.update({SECTIONS[key]: content.pop(key, ()) for key in ("figure", "claim")})
    content.update({key: tuple(content[key]) for key in TUPLES & content.keys()})
    experiment = Experiment(name=name, methods=tuple(entries), quick=quick, **content)
    _check_experiment(experiment)
    return experiment


def _check_experiment(experiment: Experiment) -> None:
    _check_known("table", experiment.data, TABLES)
    _check_known("pattern", experiment.patterns, PATTERNS)
    _check_known("search", (experiment.search,), SEARCHES)
    if not experiment.methods:
        raise ConfigError("an experiment requires a [[method]].")
    for entry in experiment.methods:
        if entry.max_size is not None and not experiment.sizes:
            raise ConfigError("max_size requires sizes.")
        if not experiment.quick:  # which may run on fewer tables
            _check_known("table", (*entry.data, *entry.settings_for), experiment.data)
        allowed = sorted(signature(ESTIMATORS[entry.method.estimator]).parameters)
        for settings in (entry.method.settings, entry.grid, *entry.settings_for.values()):
            _check_known(f"setting of {entry.method.estimator}", settings, allowed)
    if experiment.seeds < 1:
        raise ConfigError(f"seeds must be at least 1; got {experiment.seeds}.")


def _make_entry(content: dict[str, Any]) -> Entry:
    _check_known("setting of a [[method]]", content, METHOD_KEYS)
    own = {f.name for f in fields(Method)} & content.keys()
    method = Method(**{key: content.pop(key) for key in own})
    _check_known("estimator", (method.estimator,), ESTIMATORS)
    _check_known("source", (method.source,), SOURCES)
    max_size = content.get("max_size")
    if max_size is not None and (not isinstance(max_size, int) or max_size < 1):
        raise ConfigError(f"max_size must be a positive integer; got {max_size!r}.")
    return Entry(method, **{**content, "data": tuple(content.get("data", ()))})


def _select_quick(entries: list[Entry], quick: dict[str, Any]) -> list[Entry]:
    """Return the methods of a quick run; its settings replace those of the method and its grid."""
    known = {entry.method.name: entry for entry in entries}
    names = quick.pop("methods", list(known))
    estimators, settings = quick.pop("estimators", {}), quick.pop("settings", {})
    _check_known("method", (*names, *estimators, *settings), known)
    _check_known("estimator", estimators.values(), ESTIMATORS)
    selected = []
    for name, entry in known.items():
        if name in names:
            method = replace(
                entry.method,
                estimator=estimators.get(name, entry.method.estimator),
                settings={**entry.method.settings, **settings.get(name, {})},
            )
            selected.append(replace(entry, method=method))
    return selected


def _check_known(what: str, given: Iterable[str], known: Iterable[str]) -> None:
    known = sorted(known) if isinstance(known, set) else list(known)
    for one in given:
        if one not in known:
            raise ConfigError(f"unknown {what} {one!r}; expected one of {', '.join(known)}.")
