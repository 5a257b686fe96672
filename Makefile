# Everything that the project needs, it installs into .venv by itself: python3 (3.11 or newer) with venv is enough.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin

.PHONY: install demo test check style types layers coverage fuzz clean

install: $(VENV)/installed
demo: $(VENV)/installed
	$(BIN)/fkctl demo

test: $(VENV)/tests-installed
	$(BIN)/python -m pytest

check: style types layers test

style: $(VENV)/tests-installed
	$(BIN)/ruff check .
types: $(VENV)/tests-installed
	$(BIN)/mypy
layers: $(VENV)/tests-installed
	$(BIN)/lint-imports

# Ten minutes by default: make fuzz SECONDS=3600 SEED=7
SECONDS ?= 600
SEED ?= 0
fuzz: $(VENV)/tests-installed
	$(BIN)/python tests/fuzz/fuzz.py --seconds $(SECONDS) --seed $(SEED)

coverage: $(VENV)/tests-installed
	$(BIN)/coverage run -m pytest -q
	$(BIN)/coverage report

clean:
	rm -rf $(VENV) build dist *.egg-info client/*.egg-info client/build .coverage* .hypothesis .mypy_cache .pytest_cache .ruff_cache

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

# Editable, so that what is tested is what stands here.
$(VENV)/installed: $(VENV)/bin/python pyproject.toml client/pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable . --editable ./client
	touch $@

$(VENV)/tests-installed: $(VENV)/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --group test --group style
	touch $@
