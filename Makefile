# Every target sets up what it needs; Python 3.11 or later is all it takes.
PYTHON ?= python3
VENV   := .venv
OLDEST := .venv-oldest
RUN    := $(VENV)/bin/python

# The tests run in as many processes as there are cores: more threads would only wait.
test test-slow test-oldest: export OPENBLAS_NUM_THREADS = 1

# Real data, for reproduction, benchmarks and their tests, which are skipped without it.
export HIRANK_DATA ?= $(abspath $(wildcard ../shared/data))

# Says whether the compiled core is in use, and why not.
CORE_IN_USE = @$(RUN) -c "from hirank import _compiled; print('Compiled core:', _compiled.describe())"

.PHONY: demo reproduce test test-slow test-oldest coverage sanitize docs lint clean

demo: $(VENV)/ready-cli
	$(CORE_IN_USE)
	$(RUN) examples/demo.py

# Lists the experiments of the paper; `python -m reproduction NAME` runs one.
reproduce: $(VENV)/ready-cli
	$(RUN) -m reproduction --list

test: $(VENV)/ready-test
	$(CORE_IN_USE)
	$(RUN) -m pytest -n auto --dist loadfile

# What is marked slow, and the reproduction of the paper.
test-slow: $(VENV)/ready-test
	$(RUN) -m pytest -n auto --dist loadfile -m slow
	$(RUN) -m pytest -n auto -m "" reproduction

# The oldest versions of all dependencies that pyproject.toml allows.
test-oldest: $(OLDEST)/ready
	$(OLDEST)/bin/python -m pytest -n auto --dist loadfile -W default

coverage: $(VENV)/ready-test
	$(RUN) -m pytest -n auto --cov --cov-report term-missing:skip-covered --cov-report html

# The compiled core with the sanitizers of GCC, and the tests that use it. Python itself is not
# instrumented, so their library is loaded before it, and leaks, which Python has, are not reported.
SANITIZERS := -fsanitize=address,undefined -fno-sanitize-recover=undefined
SANITIZED_TESTS := tests/compiled tests/optim tests/models tests/online

sanitize: $(VENV)/ready-test
	$(RUN) -m pip install --quiet "setuptools>=77" "pybind11>=2.13"
	HIRANK_CXXFLAGS="$(SANITIZERS) -O1 -g1 -fno-omit-frame-pointer" LDFLAGS="$(SANITIZERS)" \
		$(RUN) setup.py --quiet build --build-base build/sanitize --build-lib build/sanitize/lib
	LD_PRELOAD="$$(gcc -print-file-name=libasan.so) $$(gcc -print-file-name=libubsan.so)" \
		ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 \
		PYTHONPATH=build/sanitize/lib PYTHONMALLOC=malloc OPENBLAS_NUM_THREADS=1 \
		$(RUN) -m pytest -p no:cacheprovider $(SANITIZED_TESTS)

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

# The compiled core is built again when its sources change.
CORE := setup.py $(wildcard src/hirank/_compiled/*.cpp src/hirank/_compiled/*.h)

$(VENV)/ready-cli: $(VENV)/bin/pip pyproject.toml $(CORE)
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

$(OLDEST)/ready: $(OLDEST)/bin/pip pyproject.toml $(CORE) tests/oldest.txt
	$(OLDEST)/bin/python -m pip install --quiet --group test --editable ".[cli]" --constraint tests/oldest.txt
	touch $@

clean:
	rm -rf $(VENV) $(OLDEST) dist build reproduction/build demo.png clustering.png motion.png inpainting.png classification.png
