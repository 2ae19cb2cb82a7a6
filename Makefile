# Every target does its own set-up. `make study` answers the question, `make test` tests.

PATHLENGTH = target/release/pathlength

.PHONY: study test lint setup postgresql-check clean

study: setup
	cargo build --release --locked
	$(PATHLENGTH) study byteword

test: setup
	cargo test --workspace --locked

# PostgreSQL on the engine, its own regression tests included; not part of CI, as it takes long.
postgresql-check: setup
	cargo build --release --locked
	PATHLENGTH=$(PATHLENGTH) workloads/postgresql-check

lint:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings

setup:
	./setup

clean:
	rm -rf build study
	cargo clean
