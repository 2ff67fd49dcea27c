"""The experiments of the paper, run again with hirank beside the paper's methods.

An experiment is a folder with a `config.toml` (`config`). Its cells (`schedule`) are run in
processes (`runner`) by tasks (`tasks`) and saved one by one (`cache`). From them come a tidy table
(`tidy_table`), figures (`figures`), verdicts on claims (`claims`) and a page (`page`).
"""
