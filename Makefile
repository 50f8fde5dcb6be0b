PYTHON ?= python3
BIN := .venv/bin
SCALE ?= 1

.PHONY: help install test test-lowest test-lab chromium fuzz attack lint proof coq reproduce docs screenshots weights
.PHONY: wheel clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

install: .venv/stamp  ## make the environment .venv, with the package and all that the tests need

# A file stays on one core: commands in the pages read what earlier ones wrote. Files run in the
# order of tests/conftest.py, the longest first, and not by the number of their tests.
SPREAD := -n auto --dist loadfile --no-loadscope-reorder
test: .venv/stamp chromium  ## run the tests
	$(BIN)/pytest $(SPREAD) -rs

test-lowest: .venv-lowest/stamp  ## run the tests with the lowest versions of what is needed
	PATH=$(CURDIR)/.venv-lowest/bin:$$PATH .venv-lowest/bin/pytest $(SPREAD) -rs

LAB := tests/test_lab.py tests/test_answers.py tests/test_problems.py tests/test_export.py tests/test_cluster.py
test-lab: .venv-lab/stamp  ## run the tests that need other people's tools, which are many and large
	PATH=$(CURDIR)/.venv-lab/bin:$$PATH .venv-lab/bin/pytest -rs $(LAB)

# A browser is no Python package. Where it cannot be installed the tests go on without, and say so.
chromium:  ## install Debian's chromium for the tests of the page, where that is possible
	@command -v chromium >/dev/null || { test "$$(id -u)" = 0 && command -v apt-get >/dev/null && \
	    echo "installing chromium" && export DEBIAN_FRONTEND=noninteractive && { apt-get -qq update; \
	    timeout 900 apt-get -qq install -y --no-install-recommends chromium >/dev/null; }; } || \
	    echo "chromium is missing and was not installed: the page is not tested in a browser" >&2

fuzz: .venv/stamp  ## a million random and damaged expressions for each vocabulary
	$(BIN)/python -m tests.fuzz --count 1000000

attack: .venv/stamp  ## every attack at full size (SCALE=0.01 for a taste), into results/attack.md
	$(BIN)/python -m attacks --scale $(SCALE)

lint: .venv/stamp  ## check style, types and the direction of imports
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/basedpyright
	$(BIN)/lint-imports

# The checker is linked first, so that a proof that fails stops here.
proof: .venv/stamp coq  ## check the theorem by machine; ask the extracted checker about every model
	$(MAKE) --no-print-directory -j2 -C proof checker
	$(MAKE) --no-print-directory -C proof assumptions
	$(BIN)/python proof/check_shipped.py

# As Debian names them. Where they cannot be installed, `make proof` stops and says so.
COQ := coq libcoq-mathcomp-ssreflect libcoq-flocq libzarith-ocaml-dev ocaml-findlib
coq:
	@$(MAKE) --no-print-directory -s -C proof tools 2>/dev/null || { \
	    test "$$(id -u)" = 0 && command -v apt-get >/dev/null && \
	    echo "installing $(COQ)" && export DEBIAN_FRONTEND=noninteractive && { apt-get -qq update; \
	    timeout 900 apt-get -qq install -y --no-install-recommends $(COQ) >/dev/null; }; } || { \
	    echo "the proof needs Coq 8.16 with ssreflect and Flocq, OCaml and zarith: $(COQ)" >&2; false; }

reproduce: .venv/stamp  ## train and certify thirty models; the paper's Table 1 beside ours
	$(BIN)/exactformer reproduce

docs: .venv/docs  ## build the documentation, into docs/_build
	$(BIN)/sphinx-build -W --keep-going -q docs docs/_build
	@echo docs/_build/index.html

screenshots: .venv/stamp chromium  ## the pictures of the page, into results/
	$(BIN)/python -m tests.screenshots results

weights: .venv/stamp  ## make the shipped weights anew
	$(BIN)/python -m exactformer.model.fit exactformer/weights
	for task in boolean arithmetic listops; do \
	    rm -f exactformer/weights/$$task/[0-9]*.* exactformer/weights/$$task/run.json; \
	    $(BIN)/exactformer train $$task --out exactformer/weights/$$task; done
	for machine in parity even-pairs cycle-5 compare flip-flop s3 s5; do \
	    rm -rf exactformer/weights/$$machine; \
	    $(BIN)/exactformer train $$machine --method beliefs --seeds 7520 \
	        --out exactformer/weights/$$machine; done

wheel: .venv/stamp  ## build the wheel and the source archive, into dist/
	$(BIN)/python -m build --no-isolation

clean:  ## remove what the other targets made, .venv included; results/ stays
	$(MAKE) --no-print-directory -C proof clean
	rm -rf .venv .venv-lowest .venv-lab dist docs/_build .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamp is newer than both files exactly when the environment is up to date.
.venv/stamp: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install -c constraints.txt -e '.[dev]'
	touch $@

.venv-lowest/stamp: pyproject.toml constraints-lowest.txt
	$(PYTHON) -m venv .venv-lowest
	.venv-lowest/bin/pip install -c constraints-lowest.txt -e '.[dev]'
	touch $@

.venv-lab/stamp: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv-lab
	.venv-lab/bin/pip install -c constraints.txt -e '.[dev,lab]'
	touch $@

.venv/docs: .venv/stamp
	$(BIN)/pip install -c constraints.txt -e '.[docs]'
	touch $@
