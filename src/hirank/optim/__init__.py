"""Optimization: one algorithm per file, all under the loop of `hirank.optim.loop`."""
