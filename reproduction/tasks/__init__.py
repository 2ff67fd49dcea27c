"""What a cell may do: one module a task, each with `run(cell)` that gives measurements."""
