"""``python -m hirank`` is the command ``hirank``."""

from hirank.cli import main

main()
