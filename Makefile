# make lab     environment, then JupyterLab on the course
# make test    the checks, lessons and grader (under 12 minutes)
# make test-all  adds the browser and hostile suites and the mutation run
# make grade   grades a sample class of thirty, end to end
PYTHON ?= python3
BIN := .venv/bin
export OMP_NUM_THREADS ?= 1
# Jupyter refuses to run as root, as in a container, unless it is told to.
AS_ROOT := $(if $(filter 0,$(shell id -u)),--allow-root)

.PHONY: lab test test-all test-more grade build check-built kill-rate lint

.venv/ready: requirements.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "The course needs Python 3.11 or later; try: make PYTHON=python3.11 $(MAKECMDGOALS)")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install -q --disable-pip-version-check -r requirements.txt
	$(BIN)/python -m pip install -q --disable-pip-version-check -e ".[author,grade,test]"
	@touch $@

lab: .venv/ready
	$(BIN)/jupyter lab $(AS_ROOT) $(LAB_FLAGS) notebooks/00_start_here/00_start_here.ipynb

test: .venv/ready lint check-built
	$(BIN)/python -m pytest -n 2 --dist loadfile -m "not browser and not hostile and not slow"

test-more: .venv/ready
	$(BIN)/python -m pytest -n 2 --dist loadfile -m "browser or hostile"

test-all: test test-more kill-rate

grade: .venv/ready
	$(BIN)/python -m helpers.grading.sample_class

build: .venv/ready
	$(BIN)/course build

check-built: .venv/ready
	$(BIN)/course build --check

kill-rate: .venv/ready
	$(BIN)/python -m tests.kill_rate
	$(BIN)/python -m tests.mutants

lint: .venv/ready
	$(BIN)/ruff check .
