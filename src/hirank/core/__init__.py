"""Model: objective, codes, gradients and starting points. Pure functions, no optimization."""
