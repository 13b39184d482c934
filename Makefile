# One way in: `make` lists what there is. Everything installs what it lacks into .venv and a per-user cache.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
export PYTHONPATH := operator:hack
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help
help: ## list the targets
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# -- set-up ------------------------------------------------------------------------------------------------------------
$(READY): requirements/dev.txt pyproject.toml hack/setup.sh
	@PYTHON="$(PYTHON)" hack/setup.sh $(VENV)

.PHONY: setup
setup: $(READY) ## install the Python environment into .venv

.PHONY: tools
tools: $(READY) ## build the Kubernetes programs that tests run on
	@$(BIN)/python -m controlplane tools > /dev/null

# -- use ---------------------------------------------------------------------------------------------------------------
.PHONY: demo
demo: $(READY) ## a VLMDeployment becomes Ready on a real control plane (KEEP=1 leaves it running)
	@$(BIN)/python -m demo $(if $(KEEP),--keep)

.PHONY: cluster
cluster: $(READY) ## start a control plane to play with and print its KUBECONFIG line
	@$(BIN)/python -m controlplane up

.PHONY: cluster-down
cluster-down: $(READY) ## stop the control plane to play with
	@$(BIN)/python -m controlplane down

# -- checks ------------------------------------------------------------------------------------------------------------
.PHONY: test
test: tools unit ## all tests: units, then the real API server, then the chart
	@$(BIN)/python -m pytest tests/cluster tests/chart -n 2 --dist loadfile

.PHONY: test-engine
test-engine: $(READY) ## vLLM's own parser and configuration judge the rendered arguments (needs the network and 6 GB)
	@$(BIN)/python -m engine_check
	@$(BIN)/python -m pytest tests/engine $(ARGS)

.PHONY: unit
unit: $(READY) ## the unit tests alone, in seconds
	@$(BIN)/python -m pytest tests/unit -n auto --dist worksteal $(ARGS)

.PHONY: soak
soak: tools ## every fault in every phase, a crash at every write, random edits in real time, then all properties with new chance: hours
	@$(BIN)/python -m pytest -v tests/soak --fault-seed=$$RANDOM $(ARGS)
	@$(BIN)/python -m pytest tests/unit tests/cluster/test_crd_agreement.py --hypothesis-profile=explore --fault-seed=$$RANDOM --timeout=0

.PHONY: check
check: $(READY) ## format, lint, types, import contracts, generated files, dead code
	@hack/check.sh $(BIN)

.PHONY: bench
bench: $(READY) ## measure; prints tables and writes JSON to .build/bench
	@PYTHONPATH=$(PYTHONPATH):tests $(BIN)/python -m bench $(ARGS)

.PHONY: bench-scaling
bench-scaling: $(READY) ## scaling against that of other projects, on traces (TRACES=folder, FULL=1, PUBLISH=1); twenty minutes
	@PYTHONPATH=$(PYTHONPATH):tests $(BIN)/python -m bench.scaling $(if $(TRACES),--traces $(TRACES)) $(if $(FULL),--full) $(if $(PUBLISH),--publish)

# -- generated files ---------------------------------------------------------------------------------------------------
.PHONY: generate
generate: $(READY) ## write the CRD, the permissions, the kustomize base, the golden pods and the reference pages anew
	@$(BIN)/python -m vlm_operator.cli.operator crd > crds/vlmdeployments.vlm.dev.yaml
	@cp crds/vlmdeployments.vlm.dev.yaml charts/vlm-operator/files/crd.yaml
	@$(BIN)/python -m permission_rules > charts/vlm-operator/files/permissions.yaml
	@$(BIN)/python -m kustomize_base manifests/base/vlm-operator.yaml
	@PYTHONPATH=$(PYTHONPATH):tests $(BIN)/python -m unit.engines.golden_files
	@$(BIN)/python -m reference_docs docs/reference

.PHONY: format
format: $(READY) ## format the code
	@$(BIN)/ruff format -q . && $(BIN)/ruff check -q --fix .

.PHONY: lock
lock: $(READY) ## resolve the dependencies anew (needs the network)
	@hack/lock.sh $(BIN)
