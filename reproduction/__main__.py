"""``python -m reproduction``."""
