# Every target sets up what it needs in .venv; Python 3.11 or later is all it takes.
PYTHON ?= python3
VENV   := .venv
RUN    := $(VENV)/bin/python

.PHONY: demo test lint speed clean

demo: $(VENV)/ready-plot
	$(RUN) -m hirank.demo

test: $(VENV)/ready-test
	$(RUN) -m pytest -n auto

lint: $(VENV)/ready-lint
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .
	$(RUN) -m mypy
	$(VENV)/bin/lint-imports

$(VENV)/bin/pip:
	$(PYTHON) -m venv $(VENV)
	$(RUN) -m pip install --quiet --upgrade "pip>=25.1"

$(VENV)/ready-plot: $(VENV)/bin/pip pyproject.toml
	$(RUN) -m pip install --quiet --editable ".[plot]"
	touch $@

$(VENV)/ready-test: $(VENV)/ready-plot
	$(RUN) -m pip install --quiet --group test
	touch $@

$(VENV)/ready-lint: $(VENV)/ready-plot
	$(RUN) -m pip install --quiet --group lint
	touch $@

clean:
	rm -rf $(VENV) dist build demo.png
