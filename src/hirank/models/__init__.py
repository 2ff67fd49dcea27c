"""Models that complete rows: dictionaries, mixtures, low-rank factors and their stacks."""
