"""What a cell can do: a module for each task, with `run(cell)` that yields measurements."""
