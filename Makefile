# Two commands do everything, set-up included: `make table` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: table test clean

table: $(VENV)/.installed
	@$(BIN)/python -m structrank

test: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/pytest -n 2 --dist worksteal

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	    { echo "StructRank needs Python 3.11 or newer; name one with: make PYTHON=python3.12 ..."; exit 1; }
	$(PYTHON) -m venv $(VENV)

# The stamps depend on the files that say what is to be installed, so that a pull reinstalls only when these change.
$(VENV)/.installed: setup.cfg pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

$(VENV)/.installed-test: setup.cfg pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[test]'
	@touch $@ $(VENV)/.installed

clean:
	rm -rf $(VENV) build dist *.egg-info
