"""Studies: methods x data x rates x seeds, run side by side, kept in one tidy table."""
