"""Models that learn row by row: what a stream remembers, and when it learns anew."""
