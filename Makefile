PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
TESTABLE := $(VENV)/.installed-with-tests
DOCUMENTED := $(VENV)/.installed-with-docs
COMPARABLE := $(VENV)/.installed-with-peers

export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Empty means no: else every worker and every process of a test compiles the project anew.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo test test-fresh endurance lint docs promises bench convergence table-2-2 tables-3 tables-3-2-3-3 figures-3 calibration intervals server-load batch-scoring pareto tables-4 alignment dea-panel dea-efficiency default-speed large-tables fuzz fuzz-server gpu-check gpu-wheels gpu-compile gpu-tune gpu-roofline lock sbom clean
.DELETE_ON_ERROR:

demo: $(INSTALLED)  ## fit the Wisconsin data by default and with a linear kernel, write demo/report.html
	$(BIN)/bootprob demo

test: lint  ## lint, types and all quick tests
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist worksteal -q

test-fresh: $(TESTABLE)  ## the quick tests on other random input, which a test must pass all but once in a million
	OMP_NUM_THREADS=1 BOOTPROB_TEST_SEED=$${SEED:-$$(date +%s)} $(BIN)/pytest -n 2 --dist worksteal -q

endurance: $(TESTABLE)  ## memory of large inputs, kills midway, slow clients, rehearsals of gpu-check and of the container
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist worksteal -q -m endurance

lint: $(TESTABLE)  ## ruff, types, and which folder imports which
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(DOCUMENTED)  ## the site, into build/site: every link is checked, every warning is an error
	PYTHONPATH=$(CURDIR):$(CURDIR)/gpu NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build

promises: $(TESTABLE)  ## the Monte-Carlo tests of the statistical claims; writes docs/coverage.md and tables of others
	OMP_NUM_THREADS=1 $(BIN)/pytest -q -n 2 --dist worksteal --durations 0 tests/promises
	$(BIN)/python -m docs.studies.coverage.document
	$(BIN)/python -m docs.studies.coverage.promise_tables

bench: $(COMPARABLE)  ## ours and the peers side by side; writes docs/benchmarks.md
	$(BIN)/python -m gpu.benchmarks.bench

convergence: $(TESTABLE)  ## train the full ensemble on all data of the papers that are at hand
	$(BIN)/python -m gpu.benchmarks.convergence

table-2-2: $(TESTABLE)  ## the thesis's table 2.2 on the data at hand; writes docs/studies.md
	$(BIN)/python -m docs.studies.thesis.table_2_2 --exact australian

# Cells that docs/results has with the same settings are not measured again. The thesis's B = 500 and
# ten folds throughout take hours on two cores: make tables-3 TABLES_3= TABLES_3_LARGE=
TABLES_3 := --bootstraps 200 --constrained-bootstraps 20
TABLES_3_LARGE := --bootstraps 100 --constrained-bootstraps 20 --constrained-folds 2

tables-3: $(TESTABLE)  ## the thesis's tables 3.4 to 3.7 likewise, and the time of Ctrl2
	$(BIN)/python -m docs.studies.thesis.tables_3_4_to_3_7 $(TABLES_3) \
		wisconsin housing heart australian leukemia banknote
	$(BIN)/python -m docs.studies.thesis.tables_3_4_to_3_7 $(TABLES_3_LARGE) german careval
	$(BIN)/python -m docs.studies.thesis.tables_3_4_to_3_7 --ctrl2-times

calibration: $(COMPARABLE)  ## probabilities beside other calibrators and classifiers; writes docs/calibration.md
	$(BIN)/python -m docs.studies.calibration.comparison
	OMP_NUM_THREADS=1 $(BIN)/python -m docs.studies.calibration.classifier_comparison
	OMP_NUM_THREADS=1 $(BIN)/python -m docs.studies.calibration.tabarena

# A set of all truths takes some four minutes of a core, and as long again with the RBF kernel.
intervals: $(COMPARABLE)  ## intervals of P(y | x) beside other packages' on known truths; writes docs/other_intervals.md
	OMP_NUM_THREADS=1 $(BIN)/python -m docs.studies.coverage.other_intervals $(INTERVALS)

tables-3-2-3-3: $(TESTABLE)  ## the thesis's tables 3.2 and 3.3, and those of its paper
	$(BIN)/python -m docs.studies.thesis.tables_3_2_and_3_3 $(TABLES_3_2)

figures-3: $(TESTABLE)  ## its figures 3.1 to 3.3 and 3.6, into the folder figures
	$(BIN)/python -m docs.studies.thesis.figures figures

server-load: $(COMPARABLE)  ## many clients, every reply checked; beside one predict for each request
	$(BIN)/python -m gpu.benchmarks.server_load

batch-scoring: $(TESTABLE)  ## ten million rows through `bootprob score`, beside the engine's own rate
	$(BIN)/python -m gpu.benchmarks.batch_scoring

pareto: $(TESTABLE)  ## figures 2 to 9 and table 3 of Carrizosa et al.; writes docs/pareto.md
	$(BIN)/python -m docs.studies.pareto.study

tables-4: $(TESTABLE)  ## the thesis's tables 4.2 to 4.10; writes docs/feature_selection_tables.md
	$(BIN)/python -m docs.studies.thesis.tables_4

alignment: $(TESTABLE)  ## tables 2 to 9 of Tamura et al.; writes docs/alignment_study.md
	$(BIN)/python -m docs.studies.alignment.study

dea-panel: $(TESTABLE)  ## outputs selected on a panel of the thesis's size; writes docs/dea_panel.md
	$(BIN)/python -m docs.studies.dea.panel

dea-efficiency: $(TESTABLE)  ## efficiencies in one batch beside HiGHS and SciPy; writes docs/dea_efficiency.md
	$(BIN)/python -m gpu.benchmarks.dea_efficiency

default-speed: $(COMPARABLE)  ## the default's fit and answers beside tuned LightGBM's; writes the table in docs/adaptive.md
	$(BIN)/python -m gpu.benchmarks.default_speed

large-tables: $(COMPARABLE)  ## the default on many rows beside LightGBM; writes docs/large_tables.md
	$(BIN)/python -m gpu.benchmarks.large_tables

fuzz: $(TESTABLE)  ## damaged and hostile model files: 100,000 of them
	$(BIN)/python tests/fuzz_model_files.py --files 100000 --seed $${SEED:-0}

fuzz-server: $(TESTABLE)  ## the server asked by a stranger, 20,000 times, from its OpenAPI document
	$(BIN)/python tests/server/fuzz_server.py

# make gpu-check PYTHON_GPU=python3 takes an interpreter that has torch and what else it has.
# Two commands of at most 8 minutes: the second one is make gpu-check GPU_CHECK=--second
gpu-check: $(if $(PYTHON_GPU),,$(TESTABLE))  ## is the engine right on this GPU, and how fast?
	$(or $(PYTHON_GPU),$(BIN)/python) -m gpu.check $(GPU_CHECK)

gpu-wheels: $(INSTALLED)  ## packages to carry to a GPU that nothing can be installed beside
	$(BIN)/python -m gpu.check.gather

gpu-tune: $(if $(PYTHON_GPU),,$(TESTABLE))  ## the fastest launch shapes of this GPU, into a table that the engine reads
	PYTHONPATH=gpu$${PYTHONPATH:+:$$PYTHONPATH} $(or $(PYTHON_GPU),$(BIN)/python) -m gpu.tuning $(GPU_TUNE)

gpu-compile: $(TESTABLE)  ## every Triton kernel for three architectures, without a GPU; writes docs/gpu.md
	PYTHONPATH=gpu OMP_NUM_THREADS=1 $(BIN)/python -m gpu.compilation

gpu-roofline: $(TESTABLE)  ## predicted times on an H100 from counts; writes gpu/results/predictions.json and docs/engine.md
	$(BIN)/python -m gpu.roofline

# What a file of hashes lists comes by its hash alone; then the tree itself. torch comes without CUDA where
# pip finds that build, else as the package index has it, with the libraries that it then names.
LOCKED := install --quiet --require-hashes --no-deps --requirement
TREE := install --quiet --constraint constraints.txt --no-build-isolation --editable

define base  # into the environment whose programs are in $(1)
	$(1)/python -m pip $(LOCKED) requirements/torch-cpu.txt || \
		{ echo "pip finds no torch +cpu; next, that of the package index."; $(1)/python -m pip $(LOCKED) requirements/torch.txt; }
	$(1)/python -m pip $(LOCKED) requirements/base.txt
endef

$(INSTALLED): pyproject.toml constraints.txt requirements/torch-cpu.txt requirements/torch.txt requirements/base.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "bootprob needs Python 3.11 or newer; set PYTHON=python3.x")'
	$(PYTHON) -m venv $(VENV)
	$(call base,$(BIN))
	$(BIN)/python -m pip $(TREE) .
	touch $@

$(TESTABLE): $(INSTALLED) requirements/test.txt
	$(BIN)/python -m pip $(LOCKED) requirements/test.txt
	$(BIN)/python -m pip $(TREE) ".[test]"
	touch $@

$(DOCUMENTED): $(INSTALLED) requirements/docs.txt
	$(BIN)/python -m pip $(LOCKED) requirements/docs.txt
	$(BIN)/python -m pip $(TREE) ".[docs]"
	touch $@

$(COMPARABLE): $(INSTALLED) requirements/bench.txt
	$(BIN)/python -m pip $(LOCKED) requirements/bench.txt
	$(BIN)/python -m pip $(TREE) ".[bench]"
	touch $@

lock: $(INSTALLED)  ## hashes of the versions in constraints.txt, into requirements; those of torch-cpu are kept by hand
	$(BIN)/python -m pip install --quiet uv==0.13.9
	for each in torch base server+skops+tracing test docs bench; do \
		case $$each in \
			torch) given="--no-config -";; \
			base) given="--no-emit-package torch pyproject.toml";; \
			*) given="--no-emit-package torch --extra $$(echo $$each | sed 's/+/ --extra /g') pyproject.toml";; \
		esac; \
		echo torch | $(BIN)/uv pip compile --quiet --universal --python-version 3.11.5 --generate-hashes --no-annotate \
			--custom-compile-command "make lock" --constraint constraints.txt \
			--output-file requirements/$${each%%+*}.txt $$given || exit 1; \
	done

sbom:  ## what an installation consists of, by CycloneDX: build/bootprob.cdx.json
	rm -rf build/sbom
	$(PYTHON) -m venv build/sbom/installed
	$(call base,build/sbom/installed/bin)
	build/sbom/installed/bin/python -m pip $(TREE:--editable=.)
	build/sbom/installed/bin/python -m pip uninstall --quiet --yes pip
	$(PYTHON) -m venv build/sbom/tool
	build/sbom/tool/bin/python -m pip install --quiet cyclonedx-bom==7.5.0
	sed "s/^dynamic = .*/version = \"$$(build/sbom/installed/bin/bootprob --version | cut -d' ' -f2)\"/" pyproject.toml \
		> build/sbom/pyproject.toml
	build/sbom/tool/bin/cyclonedx-py environment --pyproject build/sbom/pyproject.toml --mc-type library \
		--output-reproducible --output-file build/bootprob.cdx.json build/sbom/installed/bin/python
	rm -rf build/sbom build/lib build/bdist.*

clean:
	rm -rf $(VENV) demo build *.egg-info
