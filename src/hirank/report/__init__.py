"""The report: one self-contained page about an imputed table."""

try:
    from hirank.report.page import write_report
except ImportError as error:
    raise ImportError(
        'The report requires Jinja2 and matplotlib: pip install "hirank[cli]"'
    ) from error

__all__ = ["write_report"]
