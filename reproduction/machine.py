"""Facts about the machine and the code, for tables of results."""

from __future__ import annotations

import hashlib
import os
import platform
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import hirank


def facts() -> dict[str, Any]:
    """What numbers may depend on."""
    return {
        "version": hirank.__version__,
        "code": code(),
        "python": platform.python_version(),
        "numpy": version("numpy"),
        "scipy": version("scipy"),
        "scikit_learn": version("scikit-learn"),
        "system": f"{platform.system()} {platform.machine()}",
        "processor": _processor(),
        "cores": os.cpu_count() or 1,
        "when": datetime.now(UTC).date().isoformat(),
    }


SOURCES = (
    *("kernels", "model", "solvers", "streams", "choice", "estimators", "baselines", "cluster"),
    *("datasets", "metrics", "theory", "study/tasks"),
    *("study/data", "study/methods", "study/published", "study/trial"),
)
"""Parts of hirank that numbers depend on. How they are shown does not change them."""


def code() -> str:
    """A fingerprint of hirank's source: runs of different code are told apart by it."""
    found = hashlib.sha256()
    folder = Path(hirank.__file__).parent
    for part in SOURCES:
        for file in sorted([*folder.glob(f"{part}.py"), *folder.glob(f"{part}/*.py")]):
            found.update(file.read_bytes())
    return found.hexdigest()[:12]


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()
