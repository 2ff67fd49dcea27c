"""The report: one self-contained page about a completed table."""

from hirank.report.page import write_report

__all__ = ["write_report"]
