"""Write model files of the current format, and what they impute."""

from copy import copy
from dataclasses import replace
from pathlib import Path

import numpy as np

from hirank import KFMC, Imputer, OnlineImputer, OnlineKFMC
from hirank.models.routed import RoutedDictionaries
from hirank.models.weighted import WeightedModel
from hirank.persistence.container import FORMAT

if __name__ == "__main__":
    import pandas as pd

    folder = Path(__file__).parent
    rng = np.random.default_rng(0)
    t = rng.uniform(-1, 1, 100)
    X = np.column_stack([t, t**2, t**3 + rng.normal(size=100) / 5])
    X[rng.random(X.shape) < 0.2] = np.nan
    X[:, 0] = t
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    quick = {"max_iter": 10, "random_state": 0}
    stream = {"n_components": 8, "n_warmup": 30, "batch_size": 10, **quick}
    models = {
        "imputer": Imputer(n_init=1, bounds={"b": (0, None)}, **quick).fit(frame),
        "kfmc": KFMC(8, bounds={"b": (0, None)}, **quick).fit(frame),
        "newton": KFMC(8, solver="newton", momentum=0.4, bounds={"b": (0, None)}, **quick).fit(
            frame
        ),
        "online_imputer": OnlineImputer(window=40, **stream).partial_fit(X[:90]),
        "online_kfmc": OnlineKFMC(record_cost=True, **stream).partial_fit(X[:90]),
    }
    # A model of each type is read, whatever is selected.
    fitted, dictionary = models["imputer"]._fitted, models["kfmc"]._fitted.model
    router = fitted.mixture
    first = {
        "weighted": WeightedModel(np.array([0.5, 1.0, 2.0]), dictionary),
        "routed": RoutedDictionaries(
            router, (dictionary,) * len(router), np.geomspace(1e-3, 1e-4, len(router))
        ),
    }
    for name, model in first.items():
        stack = replace(fitted.model, models=(model, *fitted.model.models[1:]))
        models[name] = copy(models["imputer"])
        models[name].__dict__["_record"] = replace(fitted, model=stack)
    expected = {"X": X[90:]}
    for name, model in models.items():
        if isinstance(model, Imputer | KFMC):  # the file should be small
            run = replace(model._fitted.run, trace=model.trace_[-20:])
            model.__dict__["_record"] = replace(model._fitted, run=run)
        model.save(folder / f"{name}_{FORMAT}.hirank")
        expected[name] = np.asarray(model.transform(X[90:]), np.float64)
    np.savez(folder / f"expected_{FORMAT}.npz", **expected)
    print([f"{file.name} {file.stat().st_size}" for file in folder.iterdir()])
