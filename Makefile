# Each target sets up what it needs, from a fresh clone on, and does it once: see CONTRIBUTING.md.
# The environment is .venv, from uv.lock alone; uv itself lives in .tools.

UV_VERSION := 0.13.8
ARGS ?=
ifndef PYTHON
PYTHON := $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
  $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
endif

BIN := .venv/bin
STAMPS := .venv/stamps
NATIVE_SOURCES := Cargo.toml Cargo.lock pyproject.toml python/quire/_native.pyi crates/binding/docstrings.py \
  $(shell find crates -name target -prune -o \( -name '*.rs' -o -name Cargo.toml \) -print)

export PYTHON
export UV_PYTHON_DOWNLOADS := never
export UV_PYTHON := $(CURDIR)/.tools/bin/python
export VIRTUAL_ENV := $(CURDIR)/.venv
export PATH := $(CURDIR)/.venv/bin:$(CURDIR)/.tools/bin:$(PATH)
unexport CONDA_PREFIX
# Images for containers set it. The tests start hundreds of processes, each of which would compile all that it
# imports, and each worker of pytest all tests.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help demo test check torture miri fuzz lint docs bench figures instructions interop fix build wheel clean

# Optimised, without the minutes that linking for the last percent takes.
QUICK_RELEASE := CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo '  ARGS="..." is handed on by demo, test, check, torture, fuzz, interop, bench and figures: make test ARGS="-k roll"'

demo: $(STAMPS)/demo $(STAMPS)/native ## Record a year of flights, follow it live, analyse it on Spark
	@$(BIN)/python -m demo $(ARGS)

# More workers than two cores: half of the time tests wait, for files and other processes. A file of short tests goes
# to one worker. Sparks and Javas wait less and take long: each goes to whoever is free. `-n 0` runs in one process.
PYTEST = $(BIN)/pytest $(if $(filter check,$(firstword $(1))),-n 3 --dist load --maxschedchunk 1,-n 4 --dist loadgroup --no-loadscope-reorder)
# What can be run here of $(1): all of it, or with a word about it what needs no Java.
pytest = if .ci/needs jdk maven; then $(MAKE) --no-print-directory $(STAMPS)/interop && \
	  echo "· pytest -m '$(1)' $(ARGS)" && $(PYTEST) -m "$(1)" $(ARGS); else \
	  echo "· pytest -m '($(1)) and not java' $(ARGS)"; $(PYTEST) -m "($(1)) and not java" $(ARGS); status=$$?; \
	  echo "· NOT RUN: tests against Java need a JDK and Maven"; exit $$status; fi

test: $(STAMPS)/test $(STAMPS)/native ## Run the tests of every change: Rust, Python, and a little of Spark and Java
	@echo "· cargo test"
	@cargo test --quiet --locked
	@$(call pytest,not check and not rule)

check: need-valgrind $(STAMPS)/test $(STAMPS)/native $(STAMPS)/faults $(STAMPS)/oldest-spark ## Run all tests that `make test` leaves out
	@echo "· loom: every interleaving of writers and readers"
	@$(QUICK_RELEASE) RUSTFLAGS="--cfg loom" cargo test --quiet --locked --release -p quire-kernel --test 'loom_*' --target-dir target/loom
	@if cargo +nightly miri --version >/dev/null 2>&1 && \
	  test -d "$$(rustc +nightly --print sysroot)/lib/rustlib/src/rust/library"; then $(MAKE) --no-print-directory miri; \
	  else echo "· miri: NOT RUN, needs rustup component add --toolchain nightly miri rust-src"; fi
	@echo "· Rust's tests of damage and power cuts, before a test's clock runs"
	@cargo test --quiet --locked --profile fuzz -p quire-fuzz --test damage --no-run
	@$(QUICK_RELEASE) cargo test --quiet --locked --release -p quire-kernel --features power-loss --target-dir target/power --test power_loss --no-run
	@$(call pytest,check)

miri: ## Run the format and the raw memory access under Miri (nightly Rust with miri and rust-src)
	@echo "· miri: format, memory"
	@cargo +nightly miri test --quiet --locked -p quire-kernel --lib --target-dir target/miri format::
	@cargo +nightly miri test --quiet --locked -p quire-wire --lib --target-dir target/miri -- reader:: writer:: latin1::
	@cargo +nightly miri test --quiet --locked -p quire-kernel --test miri_memory --target-dir target/miri

# SHARE=0.05 does a twentieth of each, MINUTES=60 starts nothing after an hour; runs add up.
torture: need-java $(STAMPS)/test $(STAMPS)/native $(STAMPS)/faults $(STAMPS)/interop ## Attack the journal for hours, and write docs/reliability.md
	@QUIRE_TORTURE=$(or $(SHARE),1) QUIRE_TORTURE_MINUTES=$(MINUTES) $(BIN)/pytest tests $(ARGS); \
	  status=$$?; $(BIN)/python tests/support/tally.py; exit $$status

# Coverage comes from LLVM's own pass, which the stable compiler has too; the engine is libFuzzer, built
# from its crate. A target triple keeps build scripts free of the instrumentation.
FUZZ_PASS := -Cpasses=sancov-module -Ccodegen-units=1 \
  $(foreach it,level=4 inline-8bit-counters pc-table trace-compares,-Cllvm-args=-sanitizer-coverage-$(it))

fuzz: $(STAMPS)/test ## Feed made-up files to the kernel, a minute for each kind: ARGS="--seconds 600 store"
	@.ci/needs c++ cargo
	@host=$$(rustc -vV | sed -n 's/^host: //p') && export RUSTFLAGS="$(FUZZ_PASS)" && \
	cargo build --quiet --locked -p quire-fuzz --features engine --profile fuzz --target $$host --target-dir target/fuzz && \
	$(BIN)/python tests/support/fuzz.py target/fuzz/$$host/fuzz $(ARGS)

# What their failures ask for needs no other test to be understood, so they come with the linters, too.
RULES := tests/test_tidy.py tests/test_glossary.py tests/test_exceptions.py tests/test_stub.py tests/test_meetings.py \
  tests/test_api_reference.py -k "not examples"

lint: $(STAMPS)/lint $(STAMPS)/native docs ## Check format, lints, types, the rules of the tree and the site; changes nothing
	@echo "· cargo fmt, clippy"
	@cargo fmt --check
	@cargo clippy --quiet --locked --all-targets -- -D warnings
	@cargo clippy --quiet --locked --all-targets --features fault-points,quire-kernel/power-loss -- -D warnings
	@echo "· ruff"
	@$(BIN)/ruff check --quiet
	@$(BIN)/ruff format --quiet --check
	@echo "· import-linter"
	@$(call quietly,$(BIN)/lint-imports --no-cache)
	@echo "· mypy, stubtest, pyright"
	@$(BIN)/mypy --no-error-summary $(wildcard python demo tests bench examples)
	@$(BIN)/python -m mypy.stubtest quire._native --allowlist .ci/stubtest-allowlist --ignore-unused-allowlist
	@$(BIN)/pyright
	@echo "· rules of the tree: layers, sizes, words, the reference"
	@$(call quietly,$(BIN)/pytest --quiet -p no:cacheprovider $(RULES))

docs: $(STAMPS)/docs ## Build the documentation as a site in site/; a broken link is an error
	@echo "· mkdocs"
	@$(call quietly,NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict)

bench: $(STAMPS)/bench $(STAMPS)/native ## Measure, and compare with what this machine can run
	@$(BIN)/python -m bench $(ARGS)

figures: $(STAMPS)/test $(STAMPS)/native ## Count lines, imports, names and parameters: ARGS="--since COMMIT"
	@PYTHONPATH=tests/support $(BIN)/python tests/support/figures.py $(ARGS)

instructions: need-valgrind $(STAMPS)/native ## Count the instructions of a message, and renew the baseline
	@$(BIN)/python -m bench.instructions

interop: need-java $(STAMPS)/test $(STAMPS)/native $(STAMPS)/faults $(STAMPS)/interop ## Run the tests against Java's Chronicle Queue alone
	@$(BIN)/pytest -m java $(ARGS)

fix: $(STAMPS)/lint ## Rewrite what a tool can rewrite
	@cargo fmt
	@$(BIN)/ruff check --quiet --fix
	@$(BIN)/ruff format --quiet

build: $(STAMPS)/native ## Build the extension module into .venv

wheel: $(STAMPS)/native ## Build a wheel into dist
	@$(BIN)/maturin build --release --strip --quiet --locked --target-dir target/maturin --out dist
	@ls dist/*.whl

clean: ## Remove everything that can be made again
	rm -rf .venv .tools target build dist site interop/target .mypy_cache .pytest_cache .ruff_cache .hypothesis
	rm -f python/quire/_native*.so
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# What the targets above need.

.PHONY: need-java need-valgrind
need-java:
	@.ci/needs python cc cargo jdk maven

need-valgrind: # counts instructions; on Linux alone
	@.ci/needs valgrind

.tools/uv-$(UV_VERSION):
	@.ci/needs python cc cargo
	@echo "· uv $(UV_VERSION) into .tools"
	@$(PYTHON) -m venv --clear .tools
	@.tools/bin/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)
	@touch $@

sync = $(STAMPS)/$(1): pyproject.toml uv.lock .tools/uv-$(UV_VERSION) ; \
  @echo "· environment of $(1)" && \
  uv sync --quiet --frozen --inexact --no-install-project --no-default-groups $(2) && \
  mkdir -p $$(@D) && touch $$@ $(STAMPS)/build

$(eval $(call sync,build,--group build))
$(eval $(call sync,demo,--group build --group demo --extra java --extra pipeline))
$(eval $(call sync,bench,--group build --group bench --all-extras))
$(eval $(call sync,test,--group build --group test --all-extras))
$(eval $(call sync,docs,--group docs))
$(eval $(call sync,lint,--group build --group test --group lint --group bench --all-extras))

# The oldest PySpark that works, beside the newest, which is that of uv.lock. To renew the list:
# echo 'pyspark==4.1.* pandas<3 pyarrow' | tr ' ' '\n' | uv pip compile --universal --python-version 3.11 --generate-hashes -
$(STAMPS)/oldest-spark: .ci/oldest-spark.txt .tools/uv-$(UV_VERSION) | $(STAMPS)/test
	@echo "· environment of the oldest PySpark"
	@uv venv --quiet --clear .venv/oldest-spark
	@uv pip install --quiet --python .venv/oldest-spark/bin/python --require-hashes -r $<
	@touch $@

# What a command says matters only when it fails.
quietly = mkdir -p target && { $(1); } >target/make.log 2>&1 || { cat target/make.log >&2; exit 1; }

# Offline: all that maturin would look for is in the environment. A target directory of its own,
# because cargo test and clippy build PyO3 with other settings and would rebuild it in turns.
MATURIN := UV_OFFLINE=1 maturin develop --uv --release --locked --group build \
  --target-dir target/maturin

$(STAMPS)/native: $(NATIVE_SOURCES) | $(STAMPS)/build
	@echo "· extension module"
	@$(call quietly,$(MATURIN))
	@touch $@

# The package once more, outside it and for tests alone, on a kernel that can crash at any step.
FAULTS := PYO3_BUILD_EXTENSION_MODULE=1 PYO3_PYTHON=$(CURDIR)/$(BIN)/python cargo build --locked \
  -p quire-binding --features fault-points --target-dir target/faults && \
  rm -rf build/faults && mkdir -p build/faults && cp -rs $(CURDIR)/python/quire build/faults/ && \
  rm -f build/faults/quire/_native* && \
  cp target/faults/debug/lib_native.[sd][oy]* build/faults/quire/_native.abi3.so

$(STAMPS)/faults: $(NATIVE_SOURCES) $(shell find python -name '*.py') | $(STAMPS)/test
	@echo "· extension module with fault points"
	@$(call quietly,$(FAULTS))
	@touch $@

# All releases that the tests speak to, before a test's clock runs.
$(STAMPS)/interop: $(shell find interop -path interop/target -prune -o -type f -print) | $(STAMPS)/test
	@echo "· Java peers"
	@PYTHONPATH=tests/support $(BIN)/python -c "import java_peer; java_peer.build_all()"
	@touch $@
