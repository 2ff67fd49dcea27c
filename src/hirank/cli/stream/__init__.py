"""``hirank stream``: impute rows as they arrive."""

from hirank.cli.stream.command import run

__all__ = ["run"]
