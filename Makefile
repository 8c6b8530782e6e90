PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
TESTABLE := $(VENV)/.installed-with-tests
COMPARABLE := $(VENV)/.installed-with-peers

export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: demo test test-fresh endurance lint promises bench convergence table-2-2 tables-3 tables-3-2-3-3 figures-3 calibration server-load batch-scoring pareto tables-4 alignment dea-panel dea-efficiency fuzz fuzz-server gpu-check gpu-wheels gpu-compile gpu-tune gpu-roofline clean
.DELETE_ON_ERROR:

demo: $(INSTALLED)  ## fit the Wisconsin data with both kernels and write demo/report.html
	$(BIN)/bootprob demo

test: lint  ## lint, types and all quick tests
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 -q

test-fresh: $(TESTABLE)  ## the quick tests on other random input, which a test must pass all but once in a million
	OMP_NUM_THREADS=1 BOOTPROB_TEST_SEED=$${SEED:-$$(date +%s)} $(BIN)/pytest -n 2 -q

endurance: $(TESTABLE)  ## memory of large inputs, kills midway, slow clients, the rehearsal of gpu-check
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 -q -m endurance

lint: $(TESTABLE)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

promises: $(TESTABLE)  ## the Monte-Carlo tests of the statistical claims; writes docs/coverage.md and tables of others
	OMP_NUM_THREADS=1 $(BIN)/pytest -q -n 2 --dist worksteal --durations 0 tests/promises
	$(BIN)/python gpu/benchmarks/coverage_document.py
	$(BIN)/python gpu/benchmarks/promise_tables.py

bench: $(COMPARABLE)  ## ours and the peers side by side; writes docs/benchmarks.md
	$(BIN)/python gpu/benchmarks/bench.py

convergence: $(TESTABLE)  ## train the full ensemble on all data of the papers that are at hand
	$(BIN)/python gpu/benchmarks/convergence.py

table-2-2: $(TESTABLE)  ## the thesis's table 2.2 on the data at hand; writes docs/studies.md
	$(BIN)/python gpu/benchmarks/table_2_2.py --exact australian

# Cells that docs/results has with the same settings are not measured again. The thesis's B = 500 and
# ten folds throughout take hours on two cores: make tables-3 TABLES_3= TABLES_3_LARGE=
TABLES_3 := --bootstraps 200 --constrained-bootstraps 20
TABLES_3_LARGE := --bootstraps 100 --constrained-bootstraps 20 --constrained-folds 2

tables-3: $(TESTABLE)  ## the thesis's tables 3.4 to 3.7 likewise, and the time of Ctrl2
	$(BIN)/python gpu/benchmarks/tables_3_4_to_3_7.py $(TABLES_3) \
		wisconsin housing heart australian leukemia banknote
	$(BIN)/python gpu/benchmarks/tables_3_4_to_3_7.py $(TABLES_3_LARGE) german careval
	$(BIN)/python gpu/benchmarks/tables_3_4_to_3_7.py --ctrl2-times

calibration: $(COMPARABLE)  ## probabilities beside scikit-learn's and venn-abers' calibrators
	$(BIN)/python gpu/benchmarks/calibration_comparison.py

tables-3-2-3-3: $(TESTABLE)  ## the thesis's tables 3.2 and 3.3, and those of its paper
	$(BIN)/python gpu/benchmarks/tables_3_2_and_3_3.py $(TABLES_3_2)

figures-3: $(TESTABLE)  ## its figures 3.1 to 3.3 and 3.6, into the folder figures
	$(BIN)/python gpu/benchmarks/thesis_figures.py figures

server-load: $(COMPARABLE)  ## many clients, every reply checked; beside one predict for each request
	$(BIN)/python gpu/benchmarks/server_load.py

batch-scoring: $(TESTABLE)  ## ten million rows through `bootprob score`, beside the engine's own rate
	$(BIN)/python gpu/benchmarks/batch_scoring.py

pareto: $(TESTABLE)  ## figures 2 to 9 and table 3 of Carrizosa et al.; writes docs/pareto.md
	$(BIN)/python gpu/benchmarks/pareto_study.py

tables-4: $(TESTABLE)  ## the thesis's tables 4.2 to 4.10; writes docs/feature_selection_tables.md
	$(BIN)/python gpu/benchmarks/tables_4.py

alignment: $(TESTABLE)  ## tables 2 to 9 of Tamura et al.; writes docs/alignment_study.md
	$(BIN)/python gpu/benchmarks/alignment_study.py

dea-panel: $(TESTABLE)  ## outputs selected on a panel of the thesis's size; writes docs/dea_panel.md
	$(BIN)/python gpu/benchmarks/dea_panel.py

dea-efficiency: $(TESTABLE)  ## efficiencies in one batch beside HiGHS and SciPy; writes docs/dea_efficiency.md
	$(BIN)/python gpu/benchmarks/dea_efficiency.py

fuzz: $(TESTABLE)  ## damaged and hostile model files: 100,000 of them
	$(BIN)/python tests/fuzz_model_files.py --files 100000 --seed $${SEED:-0}

fuzz-server: $(TESTABLE)  ## the server asked by a stranger, 20,000 times, from its OpenAPI document
	$(BIN)/python tests/server/fuzz_server.py

# make gpu-check PYTHON_GPU=python3 takes an interpreter that has torch and what else it has.
# Two commands of at most 8 minutes: the second one is make gpu-check GPU_CHECK=--second
gpu-check: $(if $(PYTHON_GPU),,$(TESTABLE))  ## is the engine right on this GPU, and how fast?
	$(or $(PYTHON_GPU),$(BIN)/python) gpu/check $(GPU_CHECK)

gpu-wheels: $(INSTALLED)  ## packages to carry to a GPU that nothing can be installed beside
	$(BIN)/python gpu/check/gather.py

gpu-tune: $(if $(PYTHON_GPU),,$(TESTABLE))  ## the fastest launch shapes of this GPU, into a table that the engine reads
	$(if $(PYTHON_GPU),PYTHONPATH=.:gpu$${PYTHONPATH:+:$$PYTHONPATH} $(PYTHON_GPU),$(BIN)/python) \
		gpu/tuning $(GPU_TUNE)

gpu-compile: $(TESTABLE)  ## every Triton kernel for three architectures, without a GPU; writes docs/gpu.md
	OMP_NUM_THREADS=1 $(BIN)/python gpu/compilation

gpu-roofline: $(TESTABLE)  ## predicted times on an H100 from counts; writes gpu/results/predictions.json and docs/engine.md
	$(BIN)/python gpu/roofline

$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "bootprob needs Python 3.11 or newer; set PYTHON=python3.x")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable .
	touch $@

$(TESTABLE): $(INSTALLED)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[test]"
	touch $@

$(COMPARABLE): $(INSTALLED)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[bench]"
	touch $@

clean:
	rm -rf $(VENV) demo build *.egg-info
