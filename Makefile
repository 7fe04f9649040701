# Every target sets up what it needs. Only Python >= 3.11 (tested up to 3.13), git and make have to be there;
# see `make help`.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
VENV ?= .venv
SAM_VENV ?= .venvs/sam
SCAN_VENV ?= .venvs/scan
EMULATOR_VENV ?= .venvs/emulator
SAGEMAKER_VENV ?= .venvs/sagemaker
TRAINING_VENV ?= .venvs/training
DYNAMODB_LOCAL := .venvs/dynamodb-local
ASL_VALIDATOR := .venvs/asl-validator
ARGS ?=
# processor that `make build` fetches wheels for; deploy with Architecture of the same value
ARCH ?= x86_64

# handed to tools/sam_build.sh when set
export PYTHON313
# for tools/sharewarden_tools/emulator: where `sam` and the local AWS are
export SAM_VENV EMULATOR_VENV
# for tests/training: where PyTorch is
export TRAINING_VENV

bin := $(VENV)/bin
sam_bin := $(abspath $(SAM_VENV))/bin
pip_install = $(1)/bin/python -m pip install -qq --disable-pip-version-check
# the CUDA build of PyTorch and what comes with it; the CPU build is in requirements-torch.txt
no_cuda = $(addprefix --no-emit-package=,torch triton cuda-bindings cuda-pathfinder cuda-toolkit nvidia-cublas \
	nvidia-cuda-cupti nvidia-cuda-nvrtc nvidia-cuda-runtime nvidia-cudnn-cu13 nvidia-cufft nvidia-cufile nvidia-curand \
	nvidia-cusolver nvidia-cusparse nvidia-cusparselt-cu13 nvidia-nccl-cu13 nvidia-nvjitlink nvidia-nvshmem-cu13 nvidia-nvtx)
compile_pins = $(bin)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header

.PHONY: help
help:  ## List the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo "Variables:"
	@echo "  PYTHON=python3.12  what $(VENV) is made with; VENV=.venv312 puts another one beside it"
	@echo "  PYTHON313=/path    the Python 3.13 of build and e2e, if it is not found"
	@echo "  ARGS=\"...\"         more options for the command behind the target"

.PHONY: demo
demo: $(VENV)/.demo.stamp  ## Play the three-team story on this machine: real handlers, no AWS account
	@$(bin)/sharewarden demo $(ARGS)

.PHONY: setup
setup: $(VENV)/.dev.stamp  ## Make the environment that tests and gates use

.PHONY: test
test: $(VENV)/.dev.stamp  ## Run the tests, on all cores (ARGS="-k name" narrows them, "-n 0" uses one)
	@$(bin)/python -m pytest -q -n auto --dist worksteal $(ARGS)

.PHONY: contract
contract: $(VENV)/.dev.stamp $(DYNAMODB_LOCAL)/.stamp  ## Run the ledger's tests against DynamoDB Local (Linux; Java 17, npm, root)
	@$(bin)/python tests/contract/dynamodb_local.py $(DYNAMODB_LOCAL)/package/emulator $(ARGS)

.PHONY: workflows
workflows: $(VENV)/.demo.stamp $(ASL_VALIDATOR)/.stamp  ## Check the state machines by asl-validator, and that it finds planted faults (npm)
	@$(bin)/python tests/contract/asl_faults.py $(ASL_VALIDATOR)/node_modules/.bin/asl-validator

.PHONY: lint
lint: $(VENV)/.dev.stamp  ## Check format, lint, strict types, import rules and the template
	$(bin)/ruff format --check .
	$(bin)/ruff check .
	$(bin)/mypy
	$(bin)/lint-imports
	$(bin)/cfn-lint template.yaml examples/*/pool.yaml

.PHONY: format
format: $(VENV)/.dev.stamp  ## Format the code and apply safe fixes
	$(bin)/ruff format .
	$(bin)/ruff check --fix .

.PHONY: bench
bench: $(VENV)/.dev.stamp  ## Measure what costs time and calls, as ratios within one run
	@$(bin)/python -m bench $(ARGS)

.PHONY: replay
replay: $(VENV)/.demo.stamp  ## Play ten synthetic weeks on the lab and compare Batch's heuristics (simulated)
	@$(bin)/sharewarden replay week --seeds 10 $(ARGS)

.PHONY: build
build: $(SAM_VENV)/.stamp  ## Validate the template, build the Lambdas with Python 3.13, check them (ARCH=arm64)
	@AWS_DEFAULT_REGION=$${AWS_DEFAULT_REGION:-us-east-1} SAM_CLI_TELEMETRY=0 sh tools/sam_build.sh $(sam_bin) $(ARCH) $(ARGS)

.PHONY: scan
scan: $(SCAN_VENV)/.stamp  ## Look for security faults in the template (checkov; .checkov.yaml has what is waived, and why)
	@$(SCAN_VENV)/bin/checkov --config-file .checkov.yaml --file template.yaml examples/*/pool.yaml

.PHONY: deploy-local
deploy-local: build $(VENV)/.dev.stamp $(EMULATOR_VENV)/.stamp  ## Deploy the built template into a local AWS, the lab beside it, until Ctrl-C
	@$(bin)/python -m sharewarden_tools.emulator $(ARGS)

.PHONY: e2e
e2e: build $(VENV)/.dev.stamp $(EMULATOR_VENV)/.stamp $(SAGEMAKER_VENV)/.stamp  ## Run the end-to-end suite against such a deployment of its own
	@$(bin)/python -m pytest -q -m deployed tests/e2e/deployed $(ARGS)

.PHONY: training
training: $(VENV)/.dev.stamp $(TRAINING_VENV)/.stamp  ## Train, kill and resume the examples of the training helper (PyTorch on CPUs)
	@$(bin)/python -m pytest -q -m torch tests/training $(ARGS)

.PHONY: sam-local
sam-local: build $(VENV)/.dev.stamp $(EMULATOR_VENV)/.stamp  ## Run each function by `sam local` against such a deployment (Docker on Linux)
	@bash tools/sam_local/run.sh $(bin)/python $(SAM_VENV)

.PHONY: events
events: $(VENV)/.demo.stamp  ## Make the functions' payloads in events/functions anew, by the lab
	@$(bin)/python -m sharewarden_tools.samples events/functions

.PHONY: pr
pr: lint test scan build  ## Run every gate, as before a pull request

.PHONY: pins
pins: $(VENV)/.dev.stamp  ## Compile the pinned, hashed requirements anew (ARGS=--upgrade takes newer versions)
	$(compile_pins) $(ARGS) layers/sharewarden/requirements.in requirements-demo.in requirements-dev.in -o requirements-dev.txt
	$(compile_pins) -c requirements-dev.txt layers/sharewarden/requirements.in requirements-demo.in -o requirements-demo.txt
	$(compile_pins) -c requirements-dev.txt layers/sharewarden/requirements.in -o layers/sharewarden/requirements.txt
	$(compile_pins) $(ARGS) requirements-sam.in -o requirements-sam.txt
	$(compile_pins) $(ARGS) requirements-emulator.in -o requirements-emulator.txt
	$(compile_pins) $(ARGS) requirements-sagemaker.in -o requirements-sagemaker.txt
	$(compile_pins) $(ARGS) $(no_cuda) requirements-training.in -o requirements-training.txt
	$(compile_pins) $(ARGS) tools/sam_local/requirements-runtime.in -o tools/sam_local/requirements-runtime.txt
	$(compile_pins) $(ARGS) requirements-scan.in -o requirements-scan.txt

.PHONY: clean
clean:  ## Remove the environments (all .venv*), builds, caches and the local stack's files
	rm -rf $(VENV) .venv* .sharewarden .aws-sam .coverage .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# One stamp a set of requirements: a second run is instant, a changed file installs again.

$(VENV)/.demo.stamp: requirements-demo.txt pyproject.toml | $(bin)/python same-python
	@echo "installing what the demo needs into $(VENV) ..."
	@$(call pip_install,$(VENV)) --no-deps --require-hashes -r requirements-demo.txt
	@$(call pip_install,$(VENV)) --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/.dev.stamp: requirements-dev.txt $(VENV)/.demo.stamp
	@echo "installing what tests and gates need into $(VENV) ..."
	@$(call pip_install,$(VENV)) --no-deps --require-hashes -r requirements-dev.txt
	@touch $@

$(SAM_VENV)/.stamp: requirements-sam.txt | $(SAM_VENV)/bin/python
	@echo "installing the AWS SAM CLI into $(SAM_VENV) ..."
	@$(call pip_install,$(SAM_VENV)) --no-deps --require-hashes -r requirements-sam.txt
	@touch $@

# It is large and seldom run, so no time goes into compiling all of it.
$(SCAN_VENV)/.stamp: requirements-scan.txt | $(SCAN_VENV)/bin/python
	@echo "installing the security scanner into $(SCAN_VENV) ..."
	@$(call pip_install,$(SCAN_VENV)) --no-compile --no-deps --require-hashes -r requirements-scan.txt
	@touch $@

$(EMULATOR_VENV)/.stamp: requirements-emulator.txt | $(EMULATOR_VENV)/bin/python
	@echo "installing the local AWS into $(EMULATOR_VENV) ..."
	@$(call pip_install,$(EMULATOR_VENV)) --no-deps --require-hashes -r requirements-emulator.txt
	@touch $@

# the local AWS runs the functions with its own Python, so that has to be the Lambda runtime's
$(EMULATOR_VENV)/bin/python:
	@python=`sh tools/find_python.sh 3.13 "$(PYTHON313)"` || { echo "the local AWS needs Python 3.13, the Lambda runtime; name one: make $(MAKECMDGOALS) PYTHON313=/path/to/python3.13" >&2; exit 1; }; \
	$$python -m venv $(EMULATOR_VENV)

$(SAGEMAKER_VENV)/.stamp: requirements-sagemaker.txt | $(SAGEMAKER_VENV)/bin/python
	@echo "installing the SageMaker Python SDK (1 GB, some minutes) into $(SAGEMAKER_VENV) ..."
	@$(call pip_install,$(SAGEMAKER_VENV)) --no-deps --require-hashes -r requirements-sagemaker.txt
	@touch $@

$(TRAINING_VENV)/.stamp: requirements-torch.txt requirements-training.txt $(wildcard training/*.toml training/*/*.py) | $(TRAINING_VENV)/bin/python
	@echo "installing PyTorch, transformers (1.2 GB) and the training helper into $(TRAINING_VENV) ..."
	@$(call pip_install,$(TRAINING_VENV)) --no-deps --require-hashes -r requirements-torch.txt -r requirements-training.txt
	@$(call pip_install,$(TRAINING_VENV)) --no-deps --no-build-isolation --force-reinstall ./training
	@rm -rf training/build training/*.egg-info
	@touch $@

# requirements-torch.txt holds the build for this Python alone
$(TRAINING_VENV)/bin/python:
	@python=`sh tools/find_python.sh 3.11` || { echo "the PyTorch of the tests is built for Python 3.11, which was not found" >&2; exit 1; }; \
	$$python -m venv $(TRAINING_VENV)

# AWS's own DynamoDB Local travels inside this package, whose dependencies are not needed.
$(DYNAMODB_LOCAL)/.stamp: version := 2.9.30
$(DYNAMODB_LOCAL)/.stamp: sha256 := 3503ffac19f183407909fecdacf4db51ab1fdad1da7b2f177016670b2d80e4b9
$(DYNAMODB_LOCAL)/.stamp:
	@mkdir -p $(@D)
	@npm pack --silent --pack-destination $(@D) amplify-dynamodb-simulator@$(version) >/dev/null
	@echo "$(sha256)  $(@D)/amplify-dynamodb-simulator-$(version).tgz" | sha256sum --check --quiet
	@tar -xzf $(@D)/amplify-dynamodb-simulator-$(version).tgz -C $(@D)
	@touch $@

$(ASL_VALIDATOR)/.stamp: $(wildcard tools/asl_validator/*.json)
	@mkdir -p $(@D)
	@cp $^ $(@D)
	@cd $(@D) && npm ci --silent --ignore-scripts --no-fund --no-audit
	@touch $@

# An environment keeps the Python that made it, whatever PYTHON says later.
.PHONY: same-python
same-python: | $(bin)/python
ifeq ($(origin PYTHON),command line)
	@test "`$(PYTHON) -V`" = "`$(bin)/python -V`" || { echo "$(VENV) has `$(bin)/python -V`, $(PYTHON) is `$(PYTHON) -V`: add VENV=.venv-other, or make clean first" >&2; exit 1; }
endif

%/bin/python:
	@test -n "$(PYTHON)" || { echo "Sharewarden needs Python 3.11 or newer; none was found on PATH. Name one: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { echo "Sharewarden needs Python 3.11 or newer; $(PYTHON) is not: `$(PYTHON) --version 2>&1`" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "$(PYTHON) lacks the venv module; on Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
	@$(PYTHON) -m venv $*
