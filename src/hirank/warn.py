"""Warnings that point at the user's own line, not at ours or scikit-learn's."""

from __future__ import annotations

import sys
import warnings

_OURS = ("hirank.", "sklearn.")


def warn_user(message: str) -> None:
    """Warn from the nearest caller outside hirank and scikit-learn."""
    level, frame = 1, sys._getframe(0)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(_OURS):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, UserWarning, stacklevel=level)
