# Every target sets up what it needs; Python 3.11 or later is all it takes.
PYTHON ?= python3
VENV   := .venv
OLDEST := .venv-oldest
RUN    := $(VENV)/bin/python

# The tests run in as many processes as there are cores: more threads would only wait.
test test-slow test-oldest: export OPENBLAS_NUM_THREADS = 1

# Real data, for reproduction, benchmarks and their tests, which are skipped without it.
export HIRANK_DATA ?= $(abspath $(wildcard ../shared/data))

.PHONY: demo reproduce test test-slow test-oldest coverage docs lint clean

demo: $(VENV)/ready-cli
	$(RUN) examples/demo.py

# Lists the experiments of the paper; `python -m reproduction NAME` runs one.
reproduce: $(VENV)/ready-cli
	$(RUN) -m reproduction --list

# Without Numba's compiler, which takes half a minute; `make test-slow` tests the compiled form.
test: $(VENV)/ready-test
	NUMBA_DISABLE_JIT=1 $(RUN) -m pytest -n auto --dist loadfile

# What is marked slow, and the reproduction of the paper.
test-slow: $(VENV)/ready-test
	$(RUN) -m pytest -n auto --dist loadfile -m slow
	$(RUN) -m pytest -n auto -m "" tests/optim/test_compiled.py tests/optim/test_algorithm2.py
	$(RUN) -m pytest -n auto -m "" reproduction

# The oldest versions of all dependencies that pyproject.toml allows.
test-oldest: $(OLDEST)/ready
	NUMBA_DISABLE_JIT=1 $(OLDEST)/bin/python -m pytest -n auto --dist loadfile -W default

coverage: $(VENV)/ready-test
	$(RUN) -m pytest -n auto --cov --cov-report term-missing:skip-covered --cov-report html

# The documentation site, in build/site.
docs: $(VENV)/ready-docs
	$(VENV)/bin/mkdocs build --strict

lint: $(VENV)/ready-lint
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .
	$(RUN) -m mypy
	$(VENV)/bin/lint-imports

$(VENV)/bin/pip $(OLDEST)/bin/pip:
	$(PYTHON) -m venv $(@D)/..
	$(@D)/python -m pip install --quiet --upgrade "pip>=25.1"

$(VENV)/ready-cli: $(VENV)/bin/pip pyproject.toml
	$(RUN) -m pip install --quiet --editable ".[cli]"
	touch $@

$(VENV)/ready-test: $(VENV)/ready-cli
	$(RUN) -m pip install --quiet --group test
	touch $@

$(VENV)/ready-lint: $(VENV)/ready-cli
	$(RUN) -m pip install --quiet --group lint
	touch $@

$(VENV)/ready-docs: $(VENV)/ready-cli
	$(RUN) -m pip install --quiet --group docs
	touch $@

$(OLDEST)/ready: $(OLDEST)/bin/pip pyproject.toml tests/oldest.txt
	$(OLDEST)/bin/python -m pip install --quiet --group test --editable ".[cli]" --constraint tests/oldest.txt
	touch $@

clean:
	rm -rf $(VENV) $(OLDEST) dist build reproduction/build demo.png clustering.png motion.png inpainting.png classification.png
