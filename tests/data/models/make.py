"""Makes model files of the current format, and what they fill in."""

from pathlib import Path

import numpy as np

from hirank import KFMC, OnlineKFMC
from hirank.persistence.container import FORMAT

if __name__ == "__main__":
    import pandas as pd

    folder = Path(__file__).parent
    rng = np.random.default_rng(0)
    t = rng.uniform(-1, 1, 100)
    X = np.column_stack([t, t**2, t**3 + rng.normal(size=100) / 5])
    X[rng.random(X.shape) < 0.2] = np.nan
    X[:, 0] = t
    quick = {"max_iter": 10, "random_state": 0}
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    kfmc = KFMC(8, n_starts=1, bounds={"b": (0, None)}, **quick).fit(frame)
    kfmc.trace_ = kfmc.trace_[-20:]  # the file should be small
    online = OnlineKFMC(8, window=40, n_start=30, batch_size=10, **quick).partial_fit(X[:90])
    kfmc.save(folder / f"kfmc_{FORMAT}.hirank")
    online.save(folder / f"online_{FORMAT}.hirank")
    rows = X[90:]
    np.savez(
        folder / f"expected_{FORMAT}.npz",
        X=rows,
        **{
            f"kfmc_{FORMAT}": kfmc.transform(frame[90:]).astype(np.float64),
            f"online_{FORMAT}": online.transform(rows),
        },
    )
    print(kfmc.stop_reason_, [f"{f.name} {f.stat().st_size}" for f in folder.iterdir()])
