"""The machine and the code, for the tidy tables."""

from __future__ import annotations

import hashlib
import os
import platform
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import hirank


def collect_facts() -> dict[str, Any]:
    """Return what the numbers may depend on."""
    return {
        "version": hirank.__version__,
        "code": fingerprint(),
        "python": platform.python_version(),
        "numpy": version("numpy"),
        "scipy": version("scipy"),
        "scikit_learn": version("scikit-learn"),
        "system": f"{platform.system()} {platform.machine()}",
        "processor": _processor(),
        "cores": os.cpu_count() or 1,
        "when": datetime.now(UTC).date().isoformat(),
    }


HERE = Path(__file__).parent
LIBRARY = Path(hirank.__file__).parent
SOURCES = (
    *(LIBRARY / name for name in ("kernels", "core", "optim", "models", "selection", "online")),
    *(LIBRARY / name for name in ("estimators", "baselines", "cluster", "datasets", "theory")),
    *(LIBRARY / "metrics.py", HERE / "tasks", HERE / "readers"),
    *(HERE / f"{name}.py" for name in ("data", "methods", "published", "evaluate")),
)
"""The code that numbers depend on. How they are shown does not change them."""


def fingerprint() -> str:
    """Return a fingerprint of the code, by which runs of different code are recognized."""
    digest = hashlib.sha256()
    for part in SOURCES:
        for file in [part] if part.suffix else sorted(part.glob("*.py")):
            digest.update(file.read_bytes())
    return digest.hexdigest()[:12]


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()
