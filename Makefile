# Everything runs in .venv, which the first target builds by itself from Python 3.11 or later.

VENV := .venv
PY := $(VENV)/bin/python
PYTHONS ?= python3.13 python3.12 python3.11 python3
FAST := JAX_DISABLE_MOST_OPTIMIZATIONS=1
BESIDE := -q -n auto --dist worksteal

.DEFAULT_GOAL := test
.PHONY: iris test test-all test-newest test-lowest lint bench measurements peers

iris: $(VENV)/.installed
	$(PY) -m deepprox.applications.iris --splits 20 --out build/iris

# Compiling is most of the time, and less optimised programs compile sooner; test-all runs those of users.
test: $(VENV)/.installed
	$(FAST) $(PY) -m pytest $(BESIDE)

test-all: $(VENV)/.installed
	$(PY) -m pytest $(BESIDE) -m ""

# On the newest other Python that is found, with what pip gives there, and with the lowest versions allowed: these
# warn of what is new below them.
test-newest: $(PY)
	@if [ -n "$$(.ci/other-python $(PY))" ]; then $(MAKE) .venv-newest/.installed && \
	    $(FAST) .venv-newest/bin/python -m pytest $(BESIDE); \
	else echo "Not tested on another Python: none of 3.11 or later was found."; fi

test-lowest: .venv-lowest/.installed
	$(FAST) .venv-lowest/bin/python -m pytest $(BESIDE) -W ignore::DeprecationWarning

lint: $(VENV)/.installed
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy src

# Against what others use; R's glmnet and nnet join in where R has them. BENCH="one_block --quick" is a part.
bench: $(VENV)/.installed .venv-peers/.installed
	$(PY) -m benchmarks.suites $(BENCH)

measurements: $(VENV)/.installed
	$(PY) -m benchmarks

peers: .venv-peers/.installed

$(PY):
	@for python in $(PYTHONS); do \
	    if $$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	        echo "Creating $(VENV) with $$($$python --version)"; \
	        $$python -m venv $(VENV) && exit 0; \
	        rm -rf $(VENV); \
	        echo "$$python cannot create a virtual environment: install its venv module" >&2; \
	        echo "(on Debian and Ubuntu: apt install python3-venv), then run make again." >&2; \
	        exit 1; \
	    fi; \
	done; \
	echo "No Python 3.11 or later among: $(PYTHONS)." >&2; \
	echo "Install one, or name yours: make PYTHONS=/path/to/python3.11" >&2; \
	exit 1

$(VENV)/.installed: pyproject.toml | $(PY)
	$(PY) -m pip install -q -e '.[dev]'
	@touch $@

.venv-newest/.installed: pyproject.toml | $(PY)
	rm -rf .venv-newest && $$(.ci/other-python $(PY)) -m venv .venv-newest
	.venv-newest/bin/python -m pip install -q -e '.[test]'
	@touch $@

.venv-lowest/.installed: pyproject.toml | $(PY)
	rm -rf .venv-lowest && $(PY) -m venv .venv-lowest
	$(PY) .ci/lowest.py > .venv-lowest/constraints.txt
	.venv-lowest/bin/python -m pip install -q -e '.[test]' -c .venv-lowest/constraints.txt
	@touch $@

# What deepprox is measured against, in an environment of its own.
.venv-peers/.installed: | $(PY)
	$(PY) -m venv .venv-peers
	.venv-peers/bin/python -m pip install -q lassonet==0.0.21 torch==2.13.0 skglm==0.5 celer==0.7.4 scikit-learn
	@touch $@
