"""What pytest needs to know before it collects the doctests of src."""

from importlib.util import find_spec

# hirank.river can't be imported without river, which is optional.
collect_ignore = [] if find_spec("river") else ["src/hirank/river.py"]
