# Every target does its own set-up. `make study` answers the question, `make test` tests.

PATHLENGTH = target/release/pathlength

PYTHON = $(CURDIR)/build/python/bin

.PHONY: study test test-long test-python fuzz fuzz-inputs lint bench dist test-dist site setup postgresql-check clients-check sampling-check stress-ng-check network-check graphics-check system-check conformance clean

study: setup
	cargo build --release --locked
	$(PATHLENGTH) study byteword

test: setup
	cargo test --workspace --locked

# The same, with the complete tests of which `make test` runs a sample (crates/testing), and one that takes minutes.
test-long:
	PATHLENGTH_TEST_LONG=1 $(MAKE) test
	cargo test --locked --workspace --test oracle -- --ignored --exact programs::test_programs_by_address
	cargo test --locked --workspace --test features -- --ignored riscv::

# Builds and installs the Python package as its users do, but not optimized, into build/python.
test-python:
	./setup python
	PATH="$(PYTHON):$$PATH" MATURIN_PEP517_ARGS="--profile dev" \
	    pip install --quiet --no-build-isolation --no-deps --force-reinstall .
	$(PYTHON)/pytest --quiet

# Fuzzing with random programs for SECONDS, or for numbers of SEQUENCES and PROGRAMS; SEED repeats a run.
fuzz:
	./setup fuzz
	cargo build --release --locked --workspace --bin fuzz --example run
	target/release/fuzz

# Coverage-guided fuzzing of the readers of files and packets: TARGET (elf, trace, machine, gdb, assembler, spike; all), SECONDS (60) each;
# SEED makes the same inputs again.
fuzz-inputs:
	./setup fuzz-inputs
	cargo build --locked --workspace --bins
	fuzz/run

# Compares the engine's speed with other tools'; takes some minutes. PART selects (PART=--help lists the parts), RUNS and
# TRANSACTIONS say how much, BASELINE is an older program to compare with. Results are kept in bench/runs.
bench:
	./setup bench
	cargo build --release --locked --workspace --bins --example run
	target/release/bench $(PART)

# PostgreSQL on the engine, with its own regression tests; not part of CI, as it takes long.
postgresql-check: setup
	cargo build --release --locked
	PATHLENGTH=$(PATHLENGTH) checks/postgresql-check

# Clients of others against PostgreSQL while it is counted: pgbench, TPC-C and TPC-H. It needs go-tpc (GO_TPC) and tpchgen-cli (TPCHGEN);
# not part of CI.
clients-check: setup
	cargo build --release --locked
	PATHLENGTH=$(PATHLENGTH) checks/clients-check

# Test suites of GCC, shells and tools, compared with qemu-alpha; SUITE and TEST select. Not part of CI, as it takes long.
conformance:
	./setup conformance
	cargo build --release --locked --workspace --bins
	target/release/conformance

# Samples of the traces of the study smp against complete simulations: do the intervals of 99 % hold? Not part of CI, as it takes long.
sampling-check: setup
	cargo build --release --locked
	$(PATHLENGTH) study smp --transactions 32
	PATHLENGTH=$(PATHLENGTH) checks/sampling-check

# stress-ng's stressors on the engine, natively and under qemu-alpha; not part of CI, as it takes long.
stress-ng-check: setup
	cargo build --release --locked
	PATHLENGTH=$(PATHLENGTH) checks/stress-ng-check

# The TCP/IP stack for long: gigabytes with the host's TCP, and hostile packets; not part of CI, as it takes long.
network-check: setup
	checks/network-check

# The graphics server: hostile clients under sanitizers, and windows by every way of rendering; not part of CI, as it takes long.
graphics-check: setup
	checks/graphics-server build/graphics-server

# Whole systems: builds the guest's kernel, unless it is there, and checks runs, counts and traces of it; not part of CI, as it takes long.
system-check:
	./setup system
	cargo test --locked --workspace --test cli --test guest -- --ignored system:: guest_

# All that a release consists of, in dist/.
dist:
	./setup dist
	packaging/make-dist

# Installs each of them on a clean root, and uses it; needs root and a network, and is not part of CI.
test-dist:
	./setup test-dist
	packaging/test-dist

# The documentation as a site, build/site/html.
site:
	./setup site
	cargo build --locked --workspace --bins
	docs/site/make

lint:
	cargo fmt --all --check
	cargo fmt --manifest-path fuzz/Cargo.toml --check
	cargo clippy --workspace --all-targets --locked -- -D warnings

setup:
	./setup

clean:
	rm -rf build dist study
	cargo clean
