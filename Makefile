# The one door to everything: `make help`.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

CLUSTER ?= built-in
DEBIAN ?= 12
VERSIONS := 1.34 1.36
VENV := .venv
PYTHON := $(VENV)/bin/python
INSTALL := tools/uv pip install --quiet --python $(PYTHON) --constraint operator/constraints.txt --editable
PACKAGES := operator/src/tierbench benchmarks images tests tools
FAULTS := $(addprefix tests/e2e/,test_faults.py test_broker_faults.py test_kafka_faults.py test_kafka.py test_strimzi.py \
  test_attacks.py test_chart.py test_election.py test_versions.py test_network_policies.py test_pod_security.py test_policy.py)
CLUSTER_TESTS := $(VENV)/bin/pytest --durations=15
PAPER ?= brokers compression tls devices files
EXAMPLES_brokers := broker-comparison access-network
EXAMPLES_compression := broker-compression
EXAMPLES_tls := broker-tls
EXAMPLES_devices := five-devices
EXAMPLES_files := file-transfer-demo
SHELL_SCRIPTS := $(shell grep -rlE '^\#!/.*sh$$' tools images .ci 2>/dev/null)

.PHONY: help check setup generate verify lint test test-here test-unit test-client test-api test-chart test-cluster test-faults \
        test-strimzi test-versions test-debian test-vm test-arm images cluster \
        cluster-down binaries demo-images demo demo-papers bench scale calibrate clean

help: ## Show what there is
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

check: ## Say everything that the built-in cluster lacks here; changes and installs nothing
	tools/check

setup: $(VENV)/installed ## Install everything that the other targets need (Debian packages need root)

$(VENV)/installed: operator/pyproject.toml operator/constraints.txt tools/setup tools/uv
	tools/setup cluster kafka test
	$(MAKE) $(VENV)/demo
	$(INSTALL) 'operator[operator,dev]'
	touch $@

$(VENV)/demo: operator/pyproject.toml operator/constraints.txt tools/uv
	tools/uv venv --quiet --clear --python python3 $(VENV)
	$(INSTALL) operator
	touch $@

binaries:
	python3 -m tests.cluster binaries

generate: setup ## Write CRDs, chart parts, schemas and reference from the models
	$(PYTHON) -m tierbench.generate

verify: setup ## Fail if anything generated differs from what the models say
	$(PYTHON) -m tierbench.generate --check

lint: setup ## Check style, types, layers, shell and Go
	$(VENV)/bin/ruff format --check $(PACKAGES)
	$(VENV)/bin/ruff check $(PACKAGES)
	$(VENV)/bin/mypy $(PACKAGES)
	$(VENV)/bin/lint-imports
	shellcheck $(SHELL_SCRIPTS)
	test -z "$$(gofmt -l images tests)"
	for module in images/client images/pause; do \
	  (cd $$module && $(CURDIR)/tools/go vet ./... && $(CURDIR)/tools/staticcheck ./...); \
	done

test: ## Everything that must pass, two at a time: faults mostly wait, the others mostly work
	@tools/check || { echo 'make test-here tests everything that needs no cluster.' >&2; exit 1; }
	$(MAKE) setup verify lint
	python3 -m tests.cluster binaries
	python3 -m images.build
	$(MAKE) --jobs=2 --keep-going --output-sync=target test-faults test-client test-unit test-cluster test-api test-chart

test-here: verify lint test-unit test-client test-api test-chart ## Everything that needs no cluster

test-unit: setup ## Pure tests, in seconds
	$(VENV)/bin/pytest tests/unit tests/contract

test-client: setup ## The client programs
	cd images/client && $(CURDIR)/tools/go test -timeout=30m ./...
	$(VENV)/bin/pytest tests/paho

test-api: setup ## CRDs and CEL rules in a real API server
	$(VENV)/bin/pytest tests/api

test-chart: setup ## The Helm chart
	$(VENV)/bin/pytest tests/chart

test-cluster: setup ## A real cluster (IMAGES=nginx=docker.io/library/nginx:1.31: with another server than ours)
	python3 -m images.build
	$(CLUSTER_TESTS) tests/cluster tests/e2e $(FAULTS:%=--ignore=%)

test-faults: setup ## Faults, attacks, releases, and Kafka, on a cluster of their own
	python3 -m images.build
	CLUSTER_NAME=$(or $(CLUSTER_NAME),tierbench)-faults $(CLUSTER_TESTS) $(FAULTS)
	CLUSTER_NAME=$(or $(CLUSTER_NAME),tierbench)-faults python3 -m tests.cluster down

test-vm: setup ## A node in a virtual machine (a quarter of an hour where processors are emulated)
	tools/setup vm
	SLOWNESS=$${SLOWNESS:-6} $(CLUSTER_TESTS) tests/vm/test_life.py

test-arm: setup ## Benchmarks on an arm64 node beside ordinary ones (an hour where processors are emulated)
	tools/setup vm
	python3 -m images.build
	python3 -m images.build --arch arm64 client mosquitto network nginx paho pause
	SLOWNESS=$${SLOWNESS:-6} $(CLUSTER_TESTS) tests/vm/test_arm.py

test-strimzi: setup ## Kafka by Strimzi alone; CLUSTER=current: by the Strimzi that watches there
	@if [ $(CLUSTER) = built-in ]; then $(MAKE) cluster images; fi
	CLUSTER=$(CLUSTER) $(VENV)/bin/pytest tests/e2e/test_strimzi.py

test-versions: setup ## API tests and the journey on the oldest and the newest Kubernetes
	python3 -m images.build
	for version in $(VERSIONS); do \
	  export KUBERNETES=$$version CLUSTER_NAME=$(or $(CLUSTER_NAME),tierbench)-$${version/./-}; \
	  $(CLUSTER_TESTS) tests/api tests/e2e/test_journey.py; \
	  python3 -m tests.cluster down; \
	done

test-debian: setup ## A stock Debian in qemu, in which a new user's commands run (DEBIAN=13; STEPS="check full-demo")
	tools/setup vm
	python3 -m images.build
	python3 -m tests.debian $(DEBIAN) $(STEPS)

images: setup ## Build the images, and load them into the built-in cluster if it is up (ARCH=arm64 or armv7: only build)
	python3 -m images.build $(ARCH:%=--arch %)
	@if [ -z "$(ARCH)" ] && [ $(CLUSTER) = built-in ] && python3 -m tests.cluster status >/dev/null 2>&1; then \
	  python3 -m tests.cluster load build/images/*.tar; fi

cluster: setup ## Start the built-in cluster (CLUSTER=current: use the one that kubectl points at)
	@if [ $(CLUSTER) = built-in ]; then python3 -m tests.cluster up; else kubectl version >/dev/null; fi

cluster-down: ## Remove the built-in cluster
	python3 -m tests.cluster down

demo-images:
	python3 -m images.build $(DEMO_IMAGES)

demo: ## Measure file transfers on a real cluster, and see the answer
	CLUSTER=$(CLUSTER) tools/demo demo examples/file-transfer-demo

demo-papers: $(PAPER:%=demo-paper-%) ## Repeat the papers, shortened (PAPER=brokers, compression, tls, devices or files: one)

demo-paper-%:
	CLUSTER=$(CLUSTER) tools/demo demo-papers/$* $(addprefix examples/,$(EXAMPLES_$*))

bench: setup ## Compare with known peers, on a machine without other work; writes build/bench/results.json, fails beyond limits
	python3 -m images.build
	$(PYTHON) -m benchmarks.peers

scale: setup ## How much the operator carries (SCENARIO=queue: one): 20 minutes; writes build/scale/results.json
	$(PYTHON) -m benchmarks.scale $(SCENARIO)

calibrate: setup ## How often advice is right, by simulation: minutes; writes build/calibrate/results.json
	$(VENV)/bin/python -m benchmarks.calibrate

clean: ## Remove what was built here (caches stay)
	rm -rf build $(VENV)
