# Every target does its own set-up. `make study` answers the question, `make test` tests.

PATHLENGTH = target/release/pathlength

.PHONY: study test fuzz lint setup clean

study: setup
	cargo build --release --locked
	$(PATHLENGTH) study byteword

test: setup
	cargo test --workspace --locked

# As long as you like: SECONDS=, SEQUENCES=, PROGRAMS=, SEED=.
fuzz:
	./setup fuzz
	cargo build --release --locked -p pathlength-engine --example fuzz
	target/release/examples/fuzz

lint:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings

setup:
	./setup

clean:
	rm -rf build study
	cargo clean
