"""Model selection: families of models are compared on held-out entries, and stacked."""
