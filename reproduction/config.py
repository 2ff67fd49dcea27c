"""Experiments as their files tell them: `experiments/NAME/config.toml`."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field, fields, replace
from inspect import signature
from itertools import product
from pathlib import Path
from typing import Any

from reproduction.cells import SOURCES, Method
from reproduction.data import PATTERNS, TABLES
from reproduction.methods import ESTIMATORS

FILE = "config.toml"


class ConfigError(ValueError):
    """An experiment's file says something that can't be meant."""


@dataclass(frozen=True)
class Entry:
    """A method of an experiment, with the settings that are tried."""

    method: Method
    grid: dict[str, list[Any]] = field(default_factory=dict)
    data: tuple[str, ...] = ()  # only these tables; empty: all
    settings_for: dict[str, dict[str, Any]] = field(default_factory=dict)  # by table
    largest: int | None = None  # only sizes up to this one

    def runs_on(self, data: str, size: int | None) -> bool:
        """Whether it takes part on a table, of which `size` rows are taken (None: all)."""
        small = size is None or self.largest is None or size <= self.largest
        return small and (not self.data or data in self.data)

    def variants(self, data: str) -> list[Method]:
        """The method with each combination of settings, as it runs on a table."""
        settings = {**self.method.settings, **self.settings_for.get(data, {})}
        grid = {name: values for name, values in self.grid.items() if name not in settings}
        chosen = [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]
        return [replace(self.method, settings={**settings, **one}) for one in chosen]


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
    seeds: int = 1
    sizes: tuple[int, ...] = ()  # numbers of rows, where that varies: options["n"] of a cell
    tune_by: str = "missing error"
    options: dict[str, Any] = field(default_factory=dict)
    pictures: tuple[dict[str, Any], ...] = ()
    claims: tuple[dict[str, Any], ...] = ()
    expected: tuple[dict[str, Any], ...] = ()
    quick: bool = False


LISTS = {"method": "methods", "picture": "pictures", "claim": "claims"}
"""Tables that stand once each in the file, and what the record calls all of them."""
SEVERAL = {"data", "patterns", "rates", "sizes", "pictures", "claims", "expected"}
OWN = {f.name for f in fields(Experiment)} - {"name", "quick", *LISTS.values()} | {*LISTS}
OF_METHOD = {f.name for f in fields(Entry)} - {"method"} | {f.name for f in fields(Method)}
QUICK = {"data", "patterns", "rates", "seeds", "sizes", "options", "methods", "settings"}


def names(folder: Path) -> list[str]:
    """The experiments in a folder."""
    return sorted(file.parent.name for file in folder.glob(f"*/{FILE}"))


def load(folder: Path, name: str, *, quick: bool = False) -> Experiment:
    """Read an experiment; `quick` is a small version of it that runs in seconds."""
    path = folder / name / FILE
    if not path.exists():
        known = ", ".join(names(folder)) or "none"
        raise ConfigError(f"There is no experiment {name!r} in {folder}: it has {known}.")
    try:
        told = tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: {error}.") from error
    try:
        return _experiment(name, told, quick)
    except (ConfigError, TypeError, KeyError) as error:
        raise ConfigError(f"{path}: {error}") from error


def _experiment(name: str, told: dict[str, Any], quick: bool) -> Experiment:
    small = told.pop("quick", {})
    _known(told, OWN, "setting")
    _known(small, QUICK, "setting of [quick]")
    entries = [_entry(one) for one in told.pop("method", [])]
    if len({entry.method.name for entry in entries}) < len(entries):
        raise ConfigError("two methods have the same name.")
    if quick:
        entries = _shortened(entries, small.pop("methods", None), small.pop("settings", {}))
        told.update(small)
    told.update({LISTS[key]: told.pop(key, ()) for key in ("picture", "claim")})
    told.update({key: tuple(told[key]) for key in SEVERAL & told.keys()})
    experiment = Experiment(name=name, methods=tuple(entries), quick=quick, **told)
    _check("table", experiment.data, TABLES)
    _check("pattern", experiment.patterns, PATTERNS)
    if not entries:
        raise ConfigError("an experiment needs a [[method]].")
    for entry in entries:
        if entry.largest is not None and not experiment.sizes:
            raise ConfigError("largest is for experiments with sizes.")
        _check("table", (*entry.data, *entry.settings_for), dict.fromkeys(experiment.data), quick)
        allowed = signature(ESTIMATORS[entry.method.estimator]).parameters
        for given in (entry.method.settings, entry.grid, *entry.settings_for.values()):
            _known(given, set(allowed), f"setting of {entry.method.estimator}")
    if experiment.seeds < 1:
        raise ConfigError(f"seeds must be at least 1; got {experiment.seeds}.")
    return experiment


def _entry(told: dict[str, Any]) -> Entry:
    _known(told, OF_METHOD, "setting of a [[method]]")
    method = Method(
        told["name"],
        told["estimator"],
        told.get("source", "paper"),
        told.get("settings", {}),
    )
    _check("estimator", (method.estimator,), ESTIMATORS)
    _check("source", (method.source,), dict.fromkeys(SOURCES))
    largest = told.get("largest")
    if largest is not None and (not isinstance(largest, int) or largest < 1):
        raise ConfigError(f"largest must be a number of rows; got {largest!r}.")
    return Entry(
        method,
        told.get("grid", {}),
        tuple(told.get("data", ())),
        told.get("settings_for", {}),
        largest,
    )


def _shortened(
    entries: list[Entry], kept: list[str] | None, settings: dict[str, dict[str, Any]]
) -> list[Entry]:
    """Only the methods that are kept; settings given for one replace its own and its grid."""
    known = {entry.method.name: entry for entry in entries}
    _check("method", (*(kept or ()), *settings), known)
    short = []
    for name, entry in known.items():
        if kept is not None and name not in kept:
            continue
        own = {**entry.method.settings, **settings.get(name, {})}
        short.append(replace(entry, method=replace(entry.method, settings=own)))
    return short


def _known(told: dict[str, Any], allowed: set[str], what: str) -> None:
    for key in told:
        if key not in allowed:
            raise ConfigError(f"{key!r} is no {what}: there are {', '.join(sorted(allowed))}.")


def _check(what: str, given: tuple[str, ...], known: Any, lenient: bool = False) -> None:
    for one in given:
        if one not in known and not lenient:
            raise ConfigError(f"there is no {what} {one!r}: there are {', '.join(known)}.")
