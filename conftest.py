"""What pytest needs to know before it collects the doctests of src."""

from importlib.util import find_spec

# What is optional: hirank.river can't be imported without river, and hirank.plot can't draw.
collect_ignore = [
    f"src/hirank/{module}.py"
    for module, needs in (("river", "river"), ("plot", "matplotlib"))
    if not find_spec(needs)
]
