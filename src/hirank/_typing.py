"""Type aliases that the whole library shares."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]  # of floats, in single or double precision
BoolArray: TypeAlias = NDArray[np.bool_]
IntArray: TypeAlias = NDArray[np.intp]
PathLike: TypeAlias = str | os.PathLike[str]


@dataclass(frozen=True)
class Shape:
    """The axes of an array that a record holds, for ``Annotated``.

    Axes of the same name have the same length within a record, and a number is itself. Entries
    must be finite unless `finite` is False.
    """

    axes: str
    finite: bool = True


@dataclass(frozen=True)
class SavedAs:
    """The types that a field may have in a model file, where its own type is open."""

    kinds: Any
