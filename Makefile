PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: demo test lint promises bench clean
.DELETE_ON_ERROR:

demo: $(STAMP)  ## fit the Wisconsin data with both kernels and write demo/report.html
	$(BIN)/bootprob demo

test: lint  ## lint, types and all quick tests
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 -q

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

promises: $(STAMP)  ## the Monte-Carlo tests of the statistical claims
	$(BIN)/pytest -q -s tests/promises

bench: $(STAMP)  ## training times beside scikit-learn's, in one run
	$(BIN)/python gpu/benchmarks/training_time.py

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "bootprob needs Python 3.11 or newer; set PYTHON=python3.x")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[test]"
	touch $@

clean:
	rm -rf $(VENV) demo build *.egg-info
