"""KFMC with all settings given: one dictionary, nothing chosen, nothing mixed in."""

from typing import Any

from hirank import KFMC

QUICK = {"max_iter": 30, "random_state": 0}


def plain(n_components: int = 30, **changes: Any) -> KFMC:
    given = {"kernel": "rbf", "bandwidth": "path", "mix": False, **QUICK}
    return KFMC(n_components, **{**given, **changes})
