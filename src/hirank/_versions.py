"""Versions of hirank and of all that its results may depend on."""

from __future__ import annotations

import platform
import sys
from dataclasses import dataclass
from importlib import metadata

DEPENDENCIES = ("numpy", "scipy", "scikit-learn", "threadpoolctl", "narwhals")
OPTIONAL = ("matplotlib", "typer", "rich", "pyarrow", "openpyxl", "jinja2", "river")


@dataclass(frozen=True)
class Versions:
    """What runs here: versions (None: not installed), the compiled core, and BLAS."""

    system: dict[str, str]
    packages: dict[str, str | None]
    compiled_core: str  # instruction set, or "off" and why
    blas: tuple[str, ...]  # library, version, kernels and threads of each

    def to_dict(self) -> dict[str, object]:
        """Return all as plain data."""
        return {
            "system": self.system,
            "packages": self.packages,
            "compiled_core": self.compiled_core,
            "blas": list(self.blas),
        }

    def __str__(self) -> str:
        lines = {
            **self.system,
            **{name: version or "not installed" for name, version in self.packages.items()},
            "compiled core": self.compiled_core,
            "BLAS": "; ".join(self.blas) or "unknown",
        }
        width = max(map(len, lines))
        return "\n".join(f"{name:>{width}}: {text}" for name, text in lines.items())


def collect_versions() -> Versions:
    """Return the versions of hirank, Python and the dependencies, the compiled core and BLAS."""
    # Only libraries that are loaded are listed, and which BLAS is used is what matters.
    import numpy  # noqa: F401
    import scipy.linalg  # noqa: F401
    from threadpoolctl import threadpool_info

    from hirank import _compiled

    blas = [
        f"{one['internal_api']} {one.get('version') or ''} ({one.get('architecture') or '?'}), "
        f"threads: {one['num_threads']}"
        for one in threadpool_info()
        if one["user_api"] == "blas"
    ]
    return Versions(
        {
            "python": sys.version.replace("\n", " "),
            "executable": sys.executable,
            "machine": platform.platform(),
        },
        {name: _version(name) for name in ("hirank", *DEPENDENCIES, *OPTIONAL)},
        _compiled.describe(),
        tuple(dict.fromkeys(blas)),
    )


def show_versions() -> None:
    """Print the versions of hirank, Python and the dependencies, the compiled core and BLAS.

    Please add the output to reports of defects.

    Examples
    --------
    >>> import hirank
    >>> hirank.show_versions()  # doctest: +ELLIPSIS, +NORMALIZE_WHITESPACE
    python: ...
    """
    print(collect_versions())


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
