# The one door to everything: `make help`.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

CLUSTER ?= built-in
DEBIAN ?= 12
VERSIONS ?= 1.31 1.32 1.33 1.34 1.36
JOURNEYS := 1.31 1.34 1.36
VENV := .venv
RUNS ?= 15
LOAD ?= 4
PYTHON := $(VENV)/bin/python
INSTALL := tools/uv pip install --quiet --python $(PYTHON) --constraint operator/constraints.txt --editable
PACKAGES := operator/src/tierbench benchmarks images tests tools
# The first two mostly wait: they start first, and the others work meanwhile.
GATE := test-e2e test-operator test-go test-unit test-api test-paho test-lint
RELEASE := test-faults test-kinds test-edge
# Faults and edges run on clusters of their own; all other tests of the release tier run on the usual one.
FAULTS := tests/operator $(addprefix tests/e2e/,test_faults.py test_broker_faults.py test_kafka_faults.py test_strimzi.py)
EDGE := tests/e2e/test_edge.py tests/operator/test_unreachable_logs.py
LOGGED ?=
logged = $(if $(LOGGED),tools/job $(1))
PYTEST = $(call logged,$@) $(VENV)/bin/pytest --durations=15 --junitxml=build/test/$@.xml
GO_TESTS = $(call logged,$@) tools/go-tests build/test/$@.xml
export MYPY_CACHE_DIR := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/tierbench/mypy
PAPER ?= brokers compression tls devices files
EXAMPLES_brokers := papers/broker-comparison papers/access-network
EXAMPLES_compression := papers/broker-compression
EXAMPLES_tls := papers/broker-tls
EXAMPLES_devices := papers/five-devices
EXAMPLES_files := file-transfer-demo
SHELL_SCRIPTS := $(shell grep -rlE '^\#!/.*sh$$' tools images .ci 2>/dev/null)

.PHONY: help check setup generate verify lint test test-here test-unit test-client test-go test-paho test-api \
        test-operator test-e2e test-measures test-lint test-release test-faults test-kinds test-edge test-properties test-race \
        test-release-measures test-soak test-blame test-changed test-strimzi test-versions test-debian test-vm test-arm \
        images push images-archive programs archives cluster cluster-down binaries demo-images demo demo-down demo-papers bench scale \
        calibrate clean

help: ## List the targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-22s %s\n", $$1, $$2}'

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

lint: setup ## Check style, types, layers, words, shell and Go
	$(VENV)/bin/ruff format --check $(PACKAGES)
	$(VENV)/bin/ruff check $(PACKAGES)
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports
	$(PYTHON) -m tools.language
	shellcheck $(SHELL_SCRIPTS)
	test -z "$$(gofmt -l images tests)"
	for module in images/client images/pause; do \
	  (cd $$module && $(CURDIR)/tools/go vet ./... && $(CURDIR)/tools/staticcheck ./...); \
	done

test: ## The gate: everything that must pass before a change lands
	@tools/check || { echo 'make test-here tests everything that needs no cluster.' >&2; exit 1; }
	@rm -rf build/test
	$(MAKE) setup
	$(MAKE) --jobs=2 binaries archives
	@status=0; \
	$(MAKE) --no-print-directory --jobs=3 --keep-going LOGGED=1 $(GATE) || status=1; \
	$(MAKE) --no-print-directory LOGGED=1 test-measures || status=1; \
	$(PYTHON) -m tests.summary || status=1; exit $$status

test-here: test-lint test-unit test-client test-api test-operator ## Everything in the gate that needs no cluster

test-lint: ## Generated files, style, types, layers
	@$(call logged,$@) $(MAKE) --no-print-directory verify lint

test-unit: setup ## The pure core, and the contract of operator and clients
	$(PYTEST) tests/unit tests/contract -m "not release and not measures"

test-client: test-go test-paho ## The client engines, against real servers

test-go: setup
	$(GO_TESTS) -skip='^TestMeasures' ./...

test-paho: setup
	$(PYTEST) tests/paho -m "not release and not measures"

test-api: setup ## Definitions, admission, rights and the chart, on a real API server
	$(PYTEST) tests/api tests/chart -m "not release and not measures"

test-operator: setup ## The operator as a process, on a real control plane with a scripted kubelet
	$(PYTEST) tests/operator -m "not release and not measures"

test-e2e: setup ## The whole, on a real cluster
	@python3 -m images.build >/dev/null
	$(PYTEST) tests/cluster tests/e2e -m "not release and not measures"

test-measures: setup ## Tests of magnitudes: one at a time, without other work
	$(PYTEST) tests -m "measures and not release"

test-release: ## The release tier: everything that is not in the gate, on real clusters
	@rm -rf build/test
	$(MAKE) setup
	$(MAKE) --jobs=2 binaries archives
	@status=0; export TIER=release; \
	$(MAKE) --no-print-directory --jobs=2 --keep-going LOGGED=1 $(RELEASE) || status=1; \
	$(MAKE) --no-print-directory LOGGED=1 --keep-going test-properties test-race || status=1; \
	$(MAKE) --no-print-directory LOGGED=1 test-release-measures || status=1; \
	$(PYTHON) -m tests.summary || status=1; exit $$status

test-faults: setup archives ## Release tier: faults, on a cluster of their own
	CLUSTER_NAME=$(or $(CLUSTER_NAME),tierbench)-faults $(PYTEST) $(FAULTS) $(EDGE:%=--ignore=%) -m "release and not measures"
	CLUSTER_NAME=$(or $(CLUSTER_NAME),tierbench)-faults python3 -m tests.cluster down

test-edge: setup archives ## Release tier: nodes without logs, Services, or a steady connection, on a cluster of their own
	CLUSTER_NAME=$(or $(CLUSTER_NAME),tierbench)-edge $(PYTEST) $(EDGE) -m "release and not measures"
	CLUSTER_NAME=$(or $(CLUSTER_NAME),tierbench)-edge python3 -m tests.cluster down

test-kinds: setup archives ## Release tier: kinds of benchmarks, upgrades, the built-in cluster itself
	$(PYTEST) tests/unit tests/contract tests/paho tests/api tests/chart tests/cluster tests/e2e \
	  $(FAULTS:%=--ignore=%) $(EDGE:%=--ignore=%) \
	  -m "release and not measures"

test-properties: setup ## Release tier: properties with many random examples
	HYPOTHESIS_PROFILE=release $(PYTEST) tests/unit tests/paho -m "not release and not measures"

test-race: setup ## Release tier: Go's race detector
	$(GO_TESTS) -race -skip='^TestMeasures' ./...

test-release-measures: setup ## Release tier: tests of magnitudes
	$(PYTEST) tests -m "measures and release"

test-soak: setup binaries archives ## Tests that depend on timing, RUNS=15 times with LOAD=4 busy loops (ONLY=tests/paho)
	$(PYTHON) -m tests.soak --runs=$(RUNS) --load=$(LOAD) $(ONLY)

test-blame: setup binaries archives ## TEST=tests/… ten times here and at the parent commit, idle and under load
	$(PYTHON) -m tests.blame --runs=$(or $(BLAME_RUNS),10) --load=$(LOAD) $(TEST)

test-changed: ## Name the targets beyond the gate that the change since BASE=HEAD~1 needs
	@python3 -m tests.changed $(or $(BASE),HEAD~1)

test-vm: setup ## Nodes in virtual machines, one of them an hour late (half an hour where processors are emulated)
	tools/setup vm
	SLOWNESS=$${SLOWNESS:-6} $(VENV)/bin/pytest --durations=15 tests/vm/test_life.py tests/vm/test_clock.py

test-arm: setup ## Images of other architectures, and benchmarks on an arm64 node (an hour where processors are emulated)
	tools/setup vm
	python3 -m images.build
	python3 -m images.build --arch arm64 client mosquitto network nginx paho pause transfer
	SLOWNESS=$${SLOWNESS:-6} $(VENV)/bin/pytest --durations=15 tests/images tests/vm/test_arm.py

test-strimzi: setup ## Kafka by Strimzi alone; CLUSTER=current: by the Strimzi that watches there
	@if [ $(CLUSTER) = built-in ]; then $(MAKE) cluster images; fi
	CLUSTER=$(CLUSTER) $(VENV)/bin/pytest tests/e2e/test_strimzi.py

test-versions: setup ## API tests on every Kubernetes from 1.31, the journey on some (VERSIONS=1.31: one)
	python3 -m images.build
	@status=0; for version in $(VERSIONS); do \
	  export KUBERNETES=$$version CLUSTER_NAME=$(or $(CLUSTER_NAME),tierbench)-$${version/./-}; \
	  tests=tests/api; [[ " $(JOURNEYS) " != *" $$version "* ]] || tests+=" tests/e2e/test_journey.py"; \
	  echo "Kubernetes $$version: $$tests"; \
	  $(VENV)/bin/pytest --durations=15 --junitxml=build/test/test-versions-$$version.xml $$tests || status=1; \
	  python3 -m tests.cluster down; \
	done; exit $$status

test-debian: setup ## A stock Debian in qemu, in which a new user's commands run (DEBIAN=13; STEPS="check full-demo")
	tools/setup vm
	python3 -m images.build
	python3 -m tests.debian $(DEBIAN) $(STEPS)

images: setup ## Build the images, and load them into the built-in cluster if it is up (ARCH=arm64 or armv7: only build)
	python3 -m images.build $(ARCH:%=--arch %)
	@if [ -z "$(ARCH)" ] && [ $(CLUSTER) = built-in ] && python3 -m tests.cluster status >/dev/null 2>&1; then \
	  python3 -m tests.cluster load build/images/*.tar; fi

push: ## Push multi-architecture images: REGISTRY=HOST/PATH PLATFORMS=linux/amd64,linux/arm64 (INSECURE=1: plain HTTP)
	@python3 -m images.push --registry='$(REGISTRY)' --platforms='$(PLATFORMS)' $(if $(INSECURE),--insecure) $(ONLY)

images-archive: ## Write images for import by K3s, kind, minikube or containerd: PLATFORMS=linux/amd64,linux/arm64
	@python3 -m images.archive --platforms='$(PLATFORMS)'

programs: setup ## Compile tierbench-client for machines outside the cluster (TARGETS=linux/arm64): build/programs
	images/programs $(TARGETS)

cluster: setup ## Start the built-in cluster (CLUSTER=current: use the one that kubectl points at)
	@if [ $(CLUSTER) = built-in ]; then python3 -m tests.cluster up; else kubectl version >/dev/null; fi

cluster-down: ## Remove the built-in cluster
	python3 -m tests.cluster down

archives:
	python3 -m images.build

demo-images:
	python3 -m images.build $(DEMO_IMAGES)

demo: ## Measure file transfers, and see the answer (CLUSTER=current: on the cluster that kubectl points at, after a question)
	@if [ $(CLUSTER) = built-in ]; then tools/demo demo examples/file-transfer-demo; else tools/demo-current up demo; fi

demo-down: ## Remove what make demo made: the built-in cluster, or with CLUSTER=current the demo in yours
	@if [ $(CLUSTER) = built-in ]; then python3 -m tests.cluster down; else tools/demo-current down; fi

demo-papers: $(PAPER:%=demo-paper-%) ## Repeat the papers, shortened (PAPER=brokers, compression, tls, devices or files: one)

demo-paper-%:
	CLUSTER=$(CLUSTER) tools/demo demo-papers/$* $(addprefix examples/,$(EXAMPLES_$*))

bench: setup ## Compare with known peers, on a machine without other work; writes build/bench/results.json, fails beyond limits
	python3 -m images.build
	$(PYTHON) -m benchmarks.peers

scale: setup ## How much the operator carries (SCENARIO=queue: one): half an hour; writes build/scale/results.json
	$(PYTHON) -m benchmarks.scale $(SCENARIO)

calibrate: setup ## How often advice is right, by simulation: minutes; writes build/calibrate/results.json
	$(VENV)/bin/python -m benchmarks.calibrate

clean: ## Remove what was built here (caches stay)
	rm -rf build $(VENV)
