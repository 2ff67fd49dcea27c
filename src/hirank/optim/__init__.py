"""Solvers: one algorithm a file, under one loop."""
