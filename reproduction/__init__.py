"""Studies: methods x data x rates x seeds, run side by side, kept in one tidy table.

An experiment is a folder with a `config.toml` (`config`). Its cells (`plan`) are run in processes
(`runner`) by tasks (`tasks`), and kept one by one (`cache`). From them come a table (`results`),
pictures, verdicts on claims, and a page.
"""
