"""``hirank stream``: rows come in, completed rows go out."""
