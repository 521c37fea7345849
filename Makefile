# Every target installs what it needs; the second time it finds it installed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
UV := $(BIN)/uv pip install --quiet --python $(BIN)/python
# The real programs of these Kubernetes versions are built once and cached outside the work tree.
KUBERNETES := 1.36.3
OLDER := 1.32.2
CONTROL_PLANE := etcd kube-apiserver kube-controller-manager kube-scheduler kubectl
PROGRAMS := $(PYTHON) tools/real_programs.py --kubernetes
WINDOWS_PROGRAMS := kubeadm kubeadm.exe kubelet.exe kube-proxy.exe kube-log-runner.exe agnhost.exe host-local.exe
APART := $(BIN)/pytest --override-ini addopts= -q --strict-markers --import-mode=importlib
REAL := $(APART) tests/real
# Each machine is in namespaces of its own, so that two files can be tested at once.
WINDOWS := $(APART) --numprocesses 2 --dist loadfile --timeout 600 tests/windows

.PHONY: help demo image lock-image install-confinement test test-host test-browser test-real test-control-plane
.PHONY: test-older test-upstream test-upstream-older test-sonobuoy test-store test-gmsa test-gmsa-older
.PHONY: test-windows test-windows-programs build-windows-ground build-windows-programs
.PHONY: build-capi test-capi build-charts test-charts test-in-cluster build-control-plane build-older build-e2e build-sonobuoy build-store
.PHONY: fidelity prove chaos test-chaos fuzz bench reliability release release-check lint format lock clean
.DEFAULT_GOAL := help

help:
	@echo "make demo       verify a simulated hybrid cluster, from start to verdict"
	@echo "make test       lint and every fast test"
	@echo "make test-real  tests against the real Kubernetes programs (needs Go the first time)"
	@echo "make test-sonobuoy  the plugin, run by the real Sonobuoy (needs bubblewrap, and Go the first time)"
	@echo "make test-capi  our extension, asked by Cluster API's real managers (needs Go the first time)"
	@echo "make test-store  report folders in a real S3 server (needs Go the first time)"
	@echo "make test-windows  the scripts for Windows machines, run by the real PowerShell under wine (needs root and Go)"
	@echo "make test-windows-programs  the same with the real kubeadm.exe, and a foreign judge for the checks"
	@echo "make fidelity   Kubernetes' own e2e.test judges the simulated nodes; writes docs/sandbox-fidelity.md"
	@echo "make prove      every fault is noticed by whom it concerns, and every sound cluster passes"
	@echo "make chaos      a hostile API server, crashes, kills, signals, nodes that go away; PART=kills for one; build/chaos.json"
	@echo "make test-chaos  some of it, in virtual time alone: every kind of trouble, crashes, nodes that go away"
	@echo "make test-host  the sandbox's host node, and our image on it and in runc (needs root)"
	@echo "make image      the container image as an OCI layout in build/image, without a container engine"
	@echo "make test-browser  report and dashboard in a real browser (Chromium), and behind a real proxy (nginx)"
	@echo "make fuzz       hostile input for every reader; TARGET=kubeconfig INPUTS=1000 for less"
	@echo "make bench      ratios and footprints"
	@echo "make reliability  chaos, fuzz and bench, all of it; writes docs/reliability.md"
	@echo "make release    all that winready is installed from, SBOM and checksums, in dist/: built twice, installed, tried"
	@echo "make release-check  the same as a rehearsal that keeps nothing"
	@echo "make lint       ruff, mypy, import contract"
	@echo "make lock       resolve the dependencies again"
	@echo "make lock-image  take the newest Debian packages into the image's lock (needs apt)"
	@echo ".ci/run         all that must pass before a change lands; --list shows the stages"

$(BIN)/uv: locks/uv.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r locks/uv.txt
	@touch $@

$(VENV)/.run: $(BIN)/uv locks/run.txt pyproject.toml
	@$(UV) --require-hashes -r locks/run.txt
	@$(UV) --no-deps --no-build-isolation --editable .
# Where Python may not write bytecode, half of every start would be compiling.
	@$(BIN)/python -m compileall -q -x /pip/ src $(VENV)/lib
	@touch $@

$(VENV)/.dev: $(VENV)/.run locks/dev.txt
	@$(UV) --require-hashes -r locks/dev.txt
	@touch $@

demo: $(VENV)/.run
	@$(BIN)/winready run --sandbox

lint: $(VENV)/.dev
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/mypy --no-error-summary
	@$(BIN)/lint-imports --no-logo >/dev/null || $(BIN)/lint-imports

format: $(VENV)/.dev
	@$(BIN)/ruff check --fix --quiet . || true
	@$(BIN)/ruff format --quiet .

test: lint
	@$(BIN)/pytest --numprocesses 2 --dist loadfile

# The browser and the proxy are Debian's; whoever is root gets them installed, everybody else is told what is missing.
test-browser: $(VENV)/.dev
	@command -v chromium >/dev/null && command -v nginx >/dev/null || test "$$(id -u)" != 0 || \
	  { apt-get update -qq && apt-get install -qq -y chromium nginx-light; } >/dev/null
	@$(BIN)/pytest --override-ini addopts= -q --import-mode=importlib tests/browser

# Debian has all of them; whoever is root gets them installed, everybody else is told what is missing.
CONFINED := bwrap runc busybox ip
install-confinement:
	@test "$$(command -v $(CONFINED) | wc -l)" = $(words $(CONFINED)) || test "$$(id -u)" != 0 || \
	  { apt-get update -qq && apt-get install -qq -y bubblewrap runc busybox-static iproute2; } >/dev/null

test-host: $(VENV)/.dev install-confinement
	@$(APART) --timeout 900 tests/host

# Building takes most of an hour once; each part can be built and tested by itself.
test-real: test-browser test-control-plane test-older test-upstream test-upstream-older test-sonobuoy test-store test-charts test-in-cluster test-capi
	@if $(PROGRAMS) $(KUBERNETES) gmsa-webhook >/dev/null; then $(MAKE) test-gmsa test-gmsa-older; \
	  else echo "not run: test-gmsa, test-gmsa-older"; fi

build-control-plane:
	@$(PROGRAMS) $(KUBERNETES) $(CONTROL_PLANE) agnhost >/dev/null

build-charts:
	@$(PROGRAMS) $(KUBERNETES) helm kustomize >/dev/null

build-older:
	@$(PROGRAMS) $(OLDER) $(CONTROL_PLANE) >/dev/null

build-sonobuoy:
	@$(PROGRAMS) $(KUBERNETES) sonobuoy >/dev/null

CLUSTER_API := capi-core capi-bootstrap capi-control-plane capi-in-memory capi-config
build-capi:
	@$(PROGRAMS) $(KUBERNETES) $(CLUSTER_API) >/dev/null

build-store:
	@$(PROGRAMS) $(KUBERNETES) versitygw >/dev/null

build-e2e:
	@$(PROGRAMS) $(KUBERNETES) e2e.test >/dev/null

test-control-plane: $(VENV)/.dev build-control-plane install-confinement
	@$(REAL) --numprocesses 2 --dist loadfile -m "not older and not e2e and not gmsa and not sonobuoy and not charts and not in_cluster and not capi and not store"

# A Job and a CronJob of winready in a sandbox that runs them (needs bubblewrap).
test-in-cluster: $(VENV)/.dev install-confinement
	@$(REAL) -m in_cluster

# Cluster API's own managers ask our extension; the workload clusters that are judged are sandboxes.
test-capi: $(VENV)/.dev build-control-plane build-capi
	@$(REAL) -m capi

# The Helm chart and the kustomize base, rendered by the real programs.
test-charts: $(VENV)/.dev build-charts
	@$(REAL) -m charts

test-older: $(VENV)/.dev build-control-plane build-older
	@$(REAL) -m "older and not gmsa and not e2e"

test-upstream: $(VENV)/.dev build-control-plane build-e2e
	@$(REAL) -m "e2e and not older"

# Pods of the real e2e.test steered by a webhook, on an API server that has no policies for it.
test-upstream-older: $(VENV)/.dev build-control-plane build-older build-e2e
	@$(REAL) -m "e2e and older"

# Sonobuoy's aggregator and our plugin run as confined processes; each case is one run of Sonobuoy.
test-sonobuoy: $(VENV)/.dev build-control-plane build-sonobuoy install-confinement
	@$(REAL) -m sonobuoy

# Runs in a real S3 server, on loopback.
test-store: $(VENV)/.dev build-store
	@$(REAL) -m store

# Its program is not built here; what is missing is named.
test-gmsa: $(VENV)/.dev build-control-plane
	@$(PROGRAMS) $(KUBERNETES) gmsa-webhook gmsa-crd.yaml >/dev/null
	@$(REAL) -m "gmsa and not older"

test-gmsa-older: $(VENV)/.dev build-control-plane build-older
	@$(PROGRAMS) $(KUBERNETES) gmsa-webhook gmsa-crd.yaml >/dev/null
	@$(REAL) -m "gmsa and older"

# Debian with wine and PowerShell for Windows, five minutes once; what cannot be had is named.
build-windows-ground:
	@$(PYTHON) tools/windows_ground.py >/dev/null

build-windows-programs:
	@$(PROGRAMS) $(KUBERNETES) $(WINDOWS_PROGRAMS) --stand-ins tests/windows/standins >/dev/null

test-windows: $(VENV)/.dev build-windows-ground
	@$(WINDOWS) -m windows

test-windows-programs: $(VENV)/.dev build-windows-ground build-control-plane build-windows-programs
	@$(WINDOWS) -m windows_programs

# Half an hour: Kubernetes' own tests say how far the simulated nodes are like Windows.
fidelity: $(VENV)/.dev
	@$(BIN)/python tools/fidelity.py --kubernetes $(KUBERNETES) --output docs/sandbox-fidelity.md \
	  --record src/winready/proof/records/sound.xml --record-windows tests/real/records/windows.xml

prove: $(VENV)/.run
	@$(BIN)/winready sandbox prove

# Half an hour: what `make test` tries a few times is tried hundreds of times, with other seeds.
CHAOS := PYTHONPATH=tests $(BIN)/python -m chaos.whole
chaos: $(VENV)/.dev
	@$(CHAOS) $(if $(PART),--part "$(PART)") --output build/chaos.json

# Nothing in it depends on how busy the machine is.
test-chaos: $(VENV)/.dev
	@$(CHAOS) --part weather --part crashes --part "nodes gone" --seeds 1 --storms 0 --crashes 20 --nodes 10 \
	  --output build/test-chaos.json

# All inputs are known by their number: `python -m fuzz TARGET --only NUMBER` prints one.
INPUTS := 100000
fuzz: $(VENV)/.dev
	@nice -n 15 $(BIN)/python -m fuzz $(TARGET) --inputs $(INPUTS)

bench: $(VENV)/.dev
	@set -e; for bench in bench/bench_*.py; do $(BIN)/python $$bench; done

# Hours: everything that docs/reliability.md tells is measured again. What fails is told, and the page says what came.
reliability: $(VENV)/.dev
	-@$(MAKE) chaos
	-@$(MAKE) fuzz
	-@$(MAKE) bench
	@$(BIN)/python tools/reliability.py --collect build

# ADDRESS is where the files will lie; without it krew's manifest is for installing from files.
release: $(VENV)/.dev
	@$(BIN)/python tools/release.py $(if $(ADDRESS),--address $(ADDRESS))

release-check: $(VENV)/.dev
	@$(BIN)/python tools/release.py --rehearse

image: $(VENV)/.dev
	@$(BIN)/python tools/image.py

lock-image: $(VENV)/.dev
	@$(BIN)/python tools/image.py lock

lock: $(BIN)/uv
	@$(BIN)/python tools/lock.py

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
