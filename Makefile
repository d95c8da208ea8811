# Podkeeper. `make` lists what can be made; `make run` and `make test` need
# nothing but Go, make, gcc and apt-get, and are run as root.

# Where `make run` keeps its pods. Socket and log folder follow from it, so that
# it does not meet an agent that runs on this machine in earnest.
DEMO_ROOT ?= /var/lib/podkeeper-demo
# What the long targets take: seeds of the simulation, seconds per fuzz target.
SEEDS    ?= 10000
FUZZTIME ?= 60s

GO  := go
# The binary's version is the commit that Go finds. Where git cannot tell (none
# here, or a work tree of another user) Go would refuse to build.
VCS := $(shell git rev-parse HEAD >/dev/null 2>&1 && echo auto || echo false)

.DEFAULT_GOAL := help
# Targets, not files; and one after the other, since they share one engine.
.PHONY: help build run clean-run setup test check bench sim soak man golden oracle fuzz pause
.NOTPARALLEL:

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## build bin/podkeeper, static and stripped
	@CGO_ENABLED=0 $(GO) build -trimpath -buildvcs=$(VCS) -ldflags '-s -w' -o bin/podkeeper ./cmd/podkeeper

run: build ## run the pods of manifests/examples, with a Docker Engine that is installed if need be
	@scripts/engine.sh
	@scripts/image.sh
	@trap : INT TERM; \
	bin/podkeeper run --root-dir $(DEMO_ROOT) --manifests manifests/examples; status=$$?; \
	[ $$status = 0 ] || exit $$status; \
	echo 'The agent has stopped, its pods go on running: `make run` takes them up again, `make clean-run` removes them.'

clean-run: build ## remove everything that `make run` left
	@scripts/engine.sh
	@bin/podkeeper delete --all --root-dir $(DEMO_ROOT)
	@cd $(DEMO_ROOT)/volumes/default 2>/dev/null && rm -rf notebook .notebook.json || true

setup: ## install and start what the tests need: an engine, its busybox image, a few tools
	@scripts/engine.sh
	@scripts/image.sh
	@scripts/test-tools.sh

test: setup ## everything that CI runs: check, all tests against a real engine, oracle, a short fuzzing
	@GO='$(GO)' scripts/test.sh

check: ## gofmt, go vet, staticcheck, govulncheck, allowed imports
	@GO='$(GO)' scripts/check.sh

bench: setup build ## measure against the engine's own time; prints a table, writes bench.json
	$(GO) run ./agent/bench -o bench.json

sim: ## simulate the whole agent with SEEDS seeds (10,000)
	$(GO) test ./agent/sim -count=1 -timeout 40m -args -seeds $(SEEDS)

soak: setup ## kill the agent 200 times under edits, on the real engine
	$(GO) test ./agent -run '^TestAgentKilledUnderEdits$$' -count=1 -timeout 60m -v -args -soak.kills 200

man: ## write man pages into bin/man
	$(GO) test ./cmd/podkeeper -run '^TestManPages$$' -count=1 -args -man "$(CURDIR)/bin/man"

golden: ## rewrite the golden files; look at the diff before you commit it
	@packages=$$(grep -rlE --include='*_test.go' 'flag\.Bool\("update"' . | grep -v '^./tools/' | xargs -r -n 1 dirname | sort -u); \
	[ -n "$$packages" ] || { echo 'no package has golden files'; exit 0; }; \
	for package in $$packages; do $(GO) test $$package -count=1 -update || exit 1; done

oracle: ## compare decoding, defaults and validation with upstream Kubernetes
	cd tools/oracle && $(GO) test -timeout 30m ./...

fuzz: ## fuzz every target for FUZZTIME (60s)
	@GO='$(GO)' scripts/fuzz.sh $(FUZZTIME)

pause: ## compile the pause container again (needs gcc for amd64 and arm64)
	runtime/pause/src/build.sh
	@cat runtime/pause/checksums.txt
