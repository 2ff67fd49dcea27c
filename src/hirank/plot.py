"""Pictures of tables, fits and fills; needs matplotlib."""
