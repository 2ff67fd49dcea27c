"""Synthetic experiments of the same shapes as the real ones, with rows."""

import json
from types import SimpleNamespace

import numpy as np

from reproduction.cells import Method
from reproduction.config import Entry

CASES = ["one curved surface", "three curved surfaces", "ten linear subspaces"]
RATES = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7]

# Name, estimator, source, and how good: error at 10 % missing, growth with the rate, seconds.
OFFLINE = [
    ("LRF", "LRF", "paper", 0.12, 1.5, 0.3),
    ("NNM", "NNM", "paper", 0.15, 1.4, 0.5),
    ("VMC", "VMC", "paper", 0.012, 5, 20),
    ("NLMC", "NLMC", "paper", 0.01, 5, 30),
    ("KFMC (Poly)", "KFMC", "paper", 0.006, 5, 6),
    ("KFMC (RBF)", "KFMC", "paper", 0.004, 5.5, 5),
    ("hirank", "KFMC", "hirank", 0.0006, 8, 2),
    ("hirank, Newton", "KFMC", "hirank", 0.0012, 7, 3),
]
ONLINE = [
    ("OL-LRF", "OnlineLRF", "paper", 0.2, 1.5, 0.3),
    ("GROUSE", "GROUSE", "paper", 0.3, 1.2, 0.2),
    ("OL-DLSR", "DLSR", "paper", 0.1, 2, 1),
    ("OL-KFMC (Poly)", "OnlineKFMC", "paper", 0.03, 3, 2),
    ("OL-KFMC (RBF)", "OnlineKFMC", "paper", 0.02, 3.5, 2.4),
    ("hirank, window", "OnlineKFMC", "hirank", 0.004, 5, 1.5),
]
OSE = [
    ("OSE-LRF", "LRF", "paper", 0.2, 1.5, 0.1),
    ("OSE-DLSR", "DLSR", "paper", 0.1, 2, 0.2),
    ("OSE-KFMC (Poly)", "KFMC", "paper", 0.01, 5, 0.4),
    ("OSE-KFMC (RBF)", "KFMC", "paper", 0.008, 5, 0.4),
    ("hirank", "KFMC", "hirank", 0.002, 6, 0.3),
]
SIMPLE = [("interpolation", "interpolation", "peer", 0.01, 2, 0.01)]
RECOVERY = {"kind": "lines", "measure": "relative error", "x": "rate", "panels": "data"}
TIMES = {"kind": "bars", "measure": "fit seconds", "panels": "data"}
PAPER_TIMES = {
    "VMC": 370,
    "NLMC": 610,
    "KFMC (Poly)": 170,
    "KFMC (RBF)": 190,
    "OL-KFMC (Poly)": 16,
    "OL-KFMC (RBF)": 19,
}


def _settings(method):
    return {"kernel": "rbf"} if "RBF" in method else {}


def experiment(name, task, methods, figures, *, settings=None, **more):
    record = {
        "name": name,
        "title": f"Synthetic: {name}",
        "shows": "Figure 2 of the paper",
        "task": task,
        "data": ["one curved surface"],
        "patterns": ["random"],
        "rates": [0.5],
        "seeds": 5,
        "tune_by": "missing error",
        "options": {},
        "figures": figures,
        "claims": [],
        "expected": [],
        "quick": False,
        "methods": [
            Entry(Method(m[0], m[1], m[2], (settings or {}).get(m[0], _settings(m[0]))))
            for m in methods
        ],
    }
    return SimpleNamespace(**record | more)


def row(record, method, measure, value, *, data=None, pattern=None, rate=None, seed=0, **more):
    data = record.data[0] if data is None else data
    pattern = record.patterns[0] if pattern is None else pattern
    rate = record.rates[0] if rate is None else rate
    return {
        "experiment": record.name,
        "cell": f"{method}, {data}, {pattern}, {rate}, {seed}",
        "task": record.task,
        "data": data,
        "pattern": pattern,
        "rate": rate,
        "seed": seed,
        "method": method,
        "source": next(
            (m.method.source for m in record.methods if m.method.name == method), "peer"
        ),
        "settings": json.dumps(
            next((m.method.settings for m in record.methods if m.method.name == method), {})
        ),
        "selected": True,
        "measure": measure,
        "at": 0.0,
        "item": 0,
        "value": float(value),
        "seconds": 2.0,
        "cpu_seconds": 1.8,
        "failure": "",
        "code": "0123456789ab",
        "version": "0.1.0",
        "python": "3.12.1",
        "numpy": "2.1.0",
        "scipy": "1.14.0",
        "scikit_learn": "1.6.0",
        "processor": "a processor",
        "cores": 2,
        "when": "2026-11-16T12:00:00",
    } | more


def completion(name, methods, figures, measure="relative error", *, hard=None, **more):
    """Errors that grow with the rate, and times."""
    record = experiment(name, "completion", methods, figures, rates=RATES, **more)
    rng, rows = np.random.default_rng(0), []
    cells = [
        (d, p, r, s)
        for d in record.data
        for p in record.patterns
        for r in record.rates
        for s in range(record.seeds)
    ]
    for method, _, _, error, growth, seconds in methods:
        for data, pattern, rate, seed in cells:
            harder = (hard or {}).get(data, 1) * (3 if pattern == "gaps" else 1)
            value = error * harder * np.exp(growth * (rate - 0.1)) * rng.lognormal(0, 0.25)
            place = {"data": data, "pattern": pattern, "rate": rate, "seed": seed}
            rows.append(row(record, method, measure, value / (1 + value), **place))
            if "seconds" not in record.options:
                time = seconds * rng.lognormal(0, 0.1) * (1.5 - rate)
                rows.append(row(record, method, "fit seconds", time, **place))
    return record, rows


def along(name, task, methods, figures, measures, places, curve, **more):
    """Curves along `at`: curve(method's place, measure, places) are their values."""
    record = experiment(name, task, methods, figures, **more)
    rng = np.random.default_rng(1)
    rows = [
        row(record, method[0], measure, value * factor, data=data, seed=seed, at=float(at))
        for data in record.data
        for place, method in enumerate(methods)
        for measure in measures
        for seed in range(record.seeds)
        for factor in [rng.lognormal(0, 0.08)]
        for at, value in zip(places, curve(place, measure, places), strict=True)
    ]
    return record, rows


def momentum():
    etas = [0.0, 0.2, 0.5, 0.7, 0.9]
    settings = {
        f"{kernel}, eta {eta}": {"kernel": kernel, "momentum": eta}
        for kernel in ("poly", "rbf")
        for eta in etas
    }
    methods = [(name, "KFMC", "paper") for name in settings]

    def curve(place, _measure, places):
        speed = (0.01 if place < 5 else 0.03) / (1 - 0.85 * etas[place % 5])
        return 50 + 900 * np.exp(-speed * places)

    figures = [{"kind": "curves", "measure": "objective"}]
    steps = np.arange(1, 301, 3)
    return along(
        "momentum",
        "convergence",
        methods,
        figures,
        ["objective"],
        steps,
        curve,
        settings=settings,
        seeds=3,
    )


def twisted_cubic():
    figures = [
        {"kind": "cubic"},
        {"kind": "cubic", "show": "iterations", "method": "KFMC"},
    ]
    methods = [("LRMC", "NNM", "paper"), ("KFMC", "KFMC", "paper"), ("hirank", "KFMC", "hirank")]
    record = experiment(
        "twisted-cubic",
        "snapshots",
        methods,
        figures,
        seeds=1,
        data=["twisted cubic"],
        patterns=["per sample"],
        rates=[1 / 3, 2 / 3],
    )
    rng, rows = np.random.default_rng(0), []
    s = rng.uniform(-1, 1, 100)
    truth = np.column_stack([s, s**2, s**3])
    for method, *_ in methods:
        for rate in record.rates:
            observed = np.argsort(rng.random(truth.shape), axis=1) >= round(3 * rate)
            steps = [0, 10, 50, 100, 300, 500] if method == "KFMC" else [500]
            for at in steps:
                off = 0.02 if rate < 0.5 and method != "LRMC" else 0.8
                fill = truth * (1 - np.exp(-at / 60)) + off * rng.normal(size=truth.shape) * (
                    at > 0
                )
                filled = np.where(observed, truth, fill)
                rows += [
                    row(record, method, f"x{j + 1}", value, rate=rate, at=float(at), item=i)
                    for (i, j), value in np.ndenumerate(filled)
                ]
            rows += [
                row(record, method, f"true x{j + 1}", value, rate=rate, item=i)
                for (i, j), value in np.ndenumerate(truth)
            ]
    return record, rows


def complexity():
    powers = [1.1, 1.1, 2.9, 3.0, 1.6, 1.5, 1.0, 1.1]

    def curve(place, measure, places):
        if measure == "peak MB":
            return 20 + 1e-4 * places ** min(2, powers[place])
        return 0.05 + OFFLINE[place][5] * (places / 800) ** powers[place]

    return along(
        "complexity",
        "growth",
        OFFLINE,
        [{"kind": "growth"}],
        ["fit seconds", "peak MB"],
        np.array([200, 400, 800, 1600, 3200]),
        curve,
        seeds=3,
    )


def sampling_rate():
    marks = {
        "equation 36": "observed, KFMC in theory",
        "low rank": "observed, low rank in theory",
    }
    figures = [{"kind": "threshold", "measure": "missing error", "marks": marks}]
    record, rows = completion(
        "sampling-rate",
        OFFLINE[4:7],
        figures,
        "missing error",
        data=["three quadratic surfaces", "ten planes"],
    )
    theory = {"three quadratic surfaces": (0.56, 0.91), "ten planes": (0.64, 1.45)}
    rows += [
        row(record, "hirank", measure, value, data=data, rate=rate)
        for data, values in theory.items()
        for measure, value in zip(marks.values(), values, strict=True)
        for rate in record.rates
    ]
    return record, rows


def missing_patterns():
    record = experiment(
        "missing-patterns",
        "missing_patterns",
        [("none", "mean", "peer")],
        [{"kind": "patterns"}],
        patterns=["random", "gaps"],
        data=["mocap"],
        seeds=1,
    )
    rng = np.random.default_rng(0)
    missing = {
        "random": rng.random((20, 300)) < 0.5,
        "gaps": np.repeat(rng.random((20, 30)) < 0.5, 10, axis=1),
    }
    return record, [
        row(record, "none", "gap", 1, pattern=name, item=int(j), at=float(i))
        for name, table in missing.items()
        for j, i in zip(*np.nonzero(table), strict=True)
    ]


def online_cost():
    def curve(place, measure, places):
        return (5 if measure == "empirical cost" else 0.5) * (0.2 + (place + 1) / np.sqrt(places))

    measures = ["empirical cost", "empirical error"]
    return along(
        "online-cost",
        "online_cost",
        ONLINE[3:],
        [{"kind": "lines", "measure": measures, "x": "at", "panels": "measure"}],
        measures,
        np.arange(1, 301, 2),
        curve,
    )


def passes():
    def curve(place, _measure, places):
        return ONLINE[place][3] * (1 + 3 / places)

    figure = {"kind": "lines", "measure": "relative error", "x": "at"}
    return along("passes", "passes", ONLINE, [figure], ["relative error"], np.arange(1, 11), curve)


def mocap_time():
    methods = [
        *OFFLINE[2:7],
        *ONLINE[3:],
    ]
    record = experiment(
        "mocap-time",
        "completion",
        methods,
        [TIMES | {"paper": PAPER_TIMES}],
        data=["mocap"],
        seeds=3,
    )
    rng = np.random.default_rng(0)
    return record, [
        row(record, m[0], "fit seconds", 20 * m[5] * rng.lognormal(0, 0.1), seed=seed)
        for m in methods
        for seed in range(3)
    ]


EXPERIMENTS = {
    "synthetic-offline": lambda: completion(
        "synthetic-offline", OFFLINE, [RECOVERY, TIMES], data=CASES, hard={CASES[1]: 3, CASES[2]: 2}
    ),
    "synthetic-online": lambda: completion("synthetic-online", ONLINE, [RECOVERY], data=CASES),
    "synthetic-ose": lambda: completion("synthetic-ose", OSE, [RECOVERY], data=CASES),
    "momentum": momentum,
    "online-cost": online_cost,
    "passes": passes,
    "twisted-cubic": twisted_cubic,
    "hopkins": lambda: completion(
        "hopkins",
        OFFLINE,
        [RECOVERY | {"measure": "clustering error"}],
        "clustering error",
        data=["1R2RC", "1R2TCR"],
    ),
    "mocap": lambda: completion(
        "mocap",
        OFFLINE + ONLINE + SIMPLE,
        [RECOVERY | {"panels": "pattern"}],
        data=["mocap"],
        patterns=["random", "gaps"],
    ),
    "mocap-time": mocap_time,
    "complexity": complexity,
    "sampling-rate": sampling_rate,
    "missing-patterns": missing_patterns,
}
"""Functions that make each experiment and its rows, by name."""
