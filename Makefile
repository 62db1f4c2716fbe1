# Every target sets up what it needs in .venv from a clean clone; the first run installs torch.

PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test fuzz docs bench report clean

demo: .venv/demo
	@echo "make demo: separating the rows of the shipped momentum into rowsep-out/"
	$(BIN)/rowsep solve --force

test: .venv/installed
	@echo "make test: running the tests"
	$(BIN)/python -m pytest -n auto --dist worksteal

# SEED=n repeats a round, MINUTES=m goes on with further ones for so long
fuzz: .venv/installed
	@echo "make fuzz: running the random tests on fresh seeds; what fails goes to tests/examples.json"
	$(BIN)/python -m tests.fuzz $(if $(SEED),--seed $(SEED)) $(if $(MINUTES),--minutes $(MINUTES)) \
	    -n auto --dist worksteal

docs: .venv/installed
	@echo "make docs: building site/, warnings are errors; open site/index.html"
	$(BIN)/python -m pip install -q -c constraints.txt -e '.[docs]'
	OMP_NUM_THREADS=1 $(BIN)/python -m sphinx -W --keep-going -q docs site
	$(BIN)/python -m pytest -m site tests/docs

bench: .venv/installed
	@echo "make bench: timing all-pairs passes against the bare product and peers (minutes)"
	$(BIN)/python -m pip install -q -c constraints.txt -e '.[experiments]'
	$(BIN)/python -m benchmarks.pairs

report: .venv/installed
	@echo "make report: writing rowsep-report/report.html from the committed results"
	$(BIN)/python -m pip install -q -c constraints.txt -e '.[experiments]'
	$(BIN)/python -m experiments.report

clean:
	@echo "make clean: removing .venv, caches, site/, rowsep-out/ and rowsep-report/"
	rm -rf .venv build site docs/generated rowsep-out rowsep-report .cache/benchmarks .pytest_cache .ruff_cache .hypothesis *.egg-info

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	    echo "$(PYTHON) is missing or older than Python 3.11: run make PYTHON=/path/to/python3.11" >&2; \
	    exit 1; }
	@echo "setting up .venv (torch is a large download)"
	$(PYTHON) -m venv .venv

.venv/demo: pyproject.toml constraints.txt | .venv/bin/python
	$(BIN)/python -m pip install -c constraints.txt -e '.[cli]'
	@touch $@

.venv/installed: pyproject.toml constraints.txt | .venv/bin/python
	$(BIN)/python -m pip install -c constraints.txt -e '.[test]'
	@touch $@ .venv/demo
