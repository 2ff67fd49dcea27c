"""Objective, gradients, scaling, masks and starting points: pure functions, no optimization."""
