# `make table` prints the criterion table, `make test` runs all checks; both install the package first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: table test check lint types kernels docs engines bench fuzz kills cpus audit lowest clean

table: $(VENV)/.installed
	@$(BIN)/python -m structrank

# Kernels are compiled beside the checks of types; compiled by the tests, they would be by each of the two workers.
test: $(VENV)/.installed-test
	$(MAKE) -j 2 lint types kernels
	$(BIN)/pytest -n 2 --dist worksteal

# What to run often, about a minute: format, lint, types and the core of the package.
CHECKED := layers data metrics oracles optimum solvers svm
check: $(VENV)/.installed-test
	$(MAKE) -j 2 lint types kernels
	$(BIN)/pytest -n 2 --dist worksteal -q $(addprefix tests/test_,$(CHECKED:=.py))

lint: $(VENV)/.installed-test
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

kernels: $(VENV)/.installed-test
	$(BIN)/structrank warmup > /dev/null

# The documentation site, build/docs/html/index.html. Its sources are copied, as pages of docs/ link to notebooks/.
docs: $(VENV)/.installed-docs
	rm -rf build/docs
	mkdir -p build/docs/source
	cp -r docs notebooks CHANGELOG.md CODE_OF_CONDUCT.md CONTRIBUTING.md build/docs/source
	$(BIN)/sphinx-build -W --keep-going -q -c build/docs/source/docs build/docs/source build/docs/html
	@echo "wrote build/docs/html/index.html"

# Benchmarks, at least five minutes: make bench OUT=bench.json FOLDER=OHSUMED/ ARGS="--sections passes tiny".
OUT ?= bench.json
bench: $(VENV)/.installed-bench
	$(BIN)/python -m benchmarks --out "$(OUT)" $(if $(FOLDER),--folder "$(FOLDER)") $(ARGS)

# Runs exported models in Solr, OpenSearch, Lucene, Vespa, RankLib, ONNX Runtime and databases, two to eight minutes; needs a
# JDK and Maven, which fetches the engines. Its table, build/engines.md, belongs into docs/engines.md.
engines: $(VENV)/.installed-engines
	$(BIN)/python tests/engines --out build/engines.md $(ARGS)

# Types are checked on the installed wheel, in which solvers and datasets are subpackages of structrank; kernels have none.
types: $(VENV)/.installed-test
	rm -rf build/types build/lib
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --config-settings kernels=no --target build/types .
	MYPYPATH=build/types $(BIN)/mypy

# The targets below are for releases.
INPUTS ?= 100000
fuzz: $(VENV)/.installed-test
	$(BIN)/python tests/fuzz.py $(INPUTS)

# Kills training at random moments; resumed runs must end with the same model.
RUNS ?= 200
kills: $(VENV)/.installed-test
	$(BIN)/python tests/kills.py $(RUNS)

# Runs the core tests as on other processors: kernels, numpy and BLAS choose other code there, and so do two BLAS threads.
CPUS := generic haswell native two-threads
cpu-generic := NUMBA_CPU_NAME=generic NUMBA_CPU_FEATURES= OPENBLAS_CORETYPE=Nehalem \
    NPY_DISABLE_CPU_FEATURES="X86_V3 X86_V4 AVX512_ICL AVX512_SPR"
cpu-haswell := NUMBA_CPU_NAME=haswell NUMBA_CPU_FEATURES=+avx2,+fma OPENBLAS_CORETYPE=Haswell \
    NPY_DISABLE_CPU_FEATURES="X86_V4 AVX512_ICL AVX512_SPR"
cpu-native := OPENBLAS_NUM_THREADS=1
cpu-two-threads := OPENBLAS_NUM_THREADS=2 OMP_NUM_THREADS=2
cpus: $(addprefix cpu-,$(CPUS))
cpu-%: $(VENV)/.installed-test
	$(cpu-$*) NUMBA_CACHE_DIR=$(abspath build/cpus/$*) $(BIN)/pytest -n 2 --dist worksteal -q $(addprefix tests/test_,$(CORE:=.py))

# --strict: fail also for packages that the advisory database does not know, or if it cannot be reached.
audit: $(VENV)/.installed-release
	@mkdir -p build
	@$(BIN)/python -m pip freeze --exclude-editable > build/audit.txt
	@$(BIN)/pip-audit --strict --no-deps --disable-pip -r build/audit.txt 2> build/audit.log || { tail -n 1 build/audit.log; \
	    echo "make audit: not passed: a vulnerability is listed above, or advisories could not be fetched (build/audit.log)"; exit 1; }

# Runs the core tests with the oldest versions that setup.cfg allows.
LOWEST := build/lowest
CORE := data metrics solvers svm letor
lowest:
	$(PYTHON) -m venv $(LOWEST)
	sed -n 's/^    \([A-Za-z0-9_-]*\)>=\([0-9.]*\)$$/\1==\2/p' setup.cfg > $(LOWEST)/constraints.txt
	$(LOWEST)/bin/python -m pip install --quiet --disable-pip-version-check -c $(LOWEST)/constraints.txt \
	    -e . polars pytest pytest-xdist hypothesis
	$(LOWEST)/bin/python tests/import_all.py
	NUMBA_CACHE_DIR=$(LOWEST)/numba $(LOWEST)/bin/pytest $(addprefix tests/test_,$(CORE:=.py))

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	    { echo "StructRank needs Python 3.11 or newer; name one with: make PYTHON=python3.12 ..."; exit 1; }
	$(PYTHON) -m venv $(VENV)

# The stamps depend on the files that list the requirements, so that packages are reinstalled only if these files change.
# With LightGBM, for the row McRank.
$(VENV)/.installed: setup.cfg pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[trees]'
	@touch $@

$(VENV)/.installed-test: setup.cfg pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[test]'
	@touch $@ $(VENV)/.installed

$(VENV)/.installed-bench: setup.cfg pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[bench]'
	@touch $@ $(VENV)/.installed

$(VENV)/.installed-docs: setup.cfg pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[docs]'
	@touch $@ $(VENV)/.installed

$(VENV)/.installed-engines: $(VENV)/.installed-test
	$(BIN)/python -m pip install --quiet --disable-pip-version-check duckdb
	@touch $@

$(VENV)/.installed-release: $(VENV)/.installed-test
	$(BIN)/python -m pip install --quiet --disable-pip-version-check pip-audit
	@touch $@

clean:
	rm -rf $(VENV) build dist *.egg-info
