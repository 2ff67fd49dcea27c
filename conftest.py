"""What pytest needs to know before it collects the doctests of src."""

from importlib.util import find_spec

# Optional packages: hirank.river and hirank.report need theirs to be imported, hirank.plot to draw.
collect_ignore = [
    f"src/hirank/{path}"
    for path, needs in (("river.py", "river"), ("plot.py", "matplotlib"), ("report", "jinja2"))
    if not find_spec(needs)
]
