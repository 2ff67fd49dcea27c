"""Warnings that point at the user's own line, not at ours, scikit-learn's or river's."""

from __future__ import annotations

import sys
import warnings

_OURS = ("hirank.", "river.", "sklearn.")


def warn_user(message: str) -> None:
    """Warn from the nearest caller outside hirank, scikit-learn and river."""
    level, frame = 1, sys._getframe(0)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(_OURS):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, UserWarning, stacklevel=level)
