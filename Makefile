# SPDX-License-Identifier: Apache-2.0
# Needs Go, git and make. Everything else is built from Go modules once and cached (PLUMBLINE_CACHE, default ~/.cache/plumbline).

.DEFAULT_GOAL := help
SHELL := /bin/bash
export CGO_ENABLED := 0
export FUZZTIME ?= 60s

# The cache of golangci-lint keeps absolute paths: shared by clones, it reports on files of another one, without its nolint comments.
lint_tool := GOLANGCI_LINT_CACHE='$(CURDIR)/dist/lint-cache' go tool -modfile=hack/tools/lint/go.mod golangci-lint

.PHONY: help
help: ## show this list
	@awk -F':.*## ' '/^[a-z-]+:.*## / {printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# What people end by Ctrl-C runs as the terminal's foreground job, as in the shell they type into: it gets the signal, and make
# does not, which would fail however the job ends. The exit keeps the shell from becoming the job.
foreground = @[[ ! -t 0 ]] || set -m; $(1); exit $$?

PROVIDER ?= github

.PHONY: demo-time
demo-time:
	@echo 'The first time takes about eight minutes on two cores, which compile a Kubernetes and a Tekton. After that it takes a minute.'

.PHONY: demo
demo: demo-time binaries ## pushes to a pull request become truthful checks on a real Kubernetes and Tekton (PROVIDER=gitlab: a merge request; KEEP=1 leaves it running)
	go build -o dist/demo ./test/demo
	$(call foreground,dist/demo -provider=$(PROVIDER))

# make test and make test-all print what each step has cost.
timed = @TIMEFORMAT='$(1): %R s, of CPU %U s and %S s of the system'; time $(2)

# How many failed e2e tests may run once more, alone and three times. CI sets 2; a test that passes then is printed as UNSTEADY.
RERUN_FAILED ?= 0
# The packages whose tests start a cluster. They run one at a time, the longest (test/e2e) at the end.
suites := cluster faults verdicts installation campaign docs
suites_of_all := $(suites) operator hostile bench
with_cluster := $(patsubst %,-e /test/%$$,$(suites_of_all) e2e)

.PHONY: test
test: lint verify binaries tools unit ## lint, verify generated code, run all tests but those that only make test-all runs (about 20 minutes)
	hack/test.sh suites -vet=off -short -timeout 60m -p 1 -parallel 8 $(suites:%=./test/%)
	RERUN_FAILED=$(RERUN_FAILED) hack/test.sh e2e -vet=off -short -timeout 80m -parallel 8 ./test/e2e

# Five mutants a day: all have had their turn in a week.
TODAY := $(shell date +%Y%m%d)

.PHONY: test-all
test-all: lint verify binaries tools unit ## all tests on both Git services and real Tekton, every call, a campaign and the oracle with a seed of today, five mutants (about an hour)
	hack/test.sh suites -vet=off -timeout 2h -p 1 -parallel 8 $(suites_of_all:%=./test/%)
	hack/test.sh e2e -vet=off -timeout 4h -parallel 8 ./test/e2e -every-class
	$(call timed,campaign,$(MAKE) campaign SEED=$(TODAY) MINUTES=5)
	$(call timed,mutants,./hack/mutants.sh today)
	$(call timed,oracle,$(MAKE) oracle SEED=$(TODAY) SCENARIOS=20)
	$(call timed,migration,$(MAKE) migration REPOSITORIES=12)
	@echo "make test-all passed at $$(git rev-parse --short HEAD) with the seed $(TODAY)"

# make test does not build a release twice.
short := -short
test-all: short :=

# -count 1: go remembers results, and does not see changes of files outside of the module.
.PHONY: tools
tools: ## test the modules below hack/tools
	$(call timed,tools,for tool in chart ko promrules scan schema; do go -C hack/tools/$$tool test -count 1 $(short) ./... || exit 1; done)

TEST ?=
PKG ?= ./test/e2e

.PHONY: steady
steady: binaries ## run the tests TEST=<regular expression> of PKG=./test/e2e ten times while two loops keep the processors busy: a new test has to pass it
	@[[ -n '$(TEST)' ]] || { echo 'make steady needs TEST=<regular expression>' >&2; exit 1; }
	@for loop in 1 2; do while :; do :; done & done; trap 'kill $$(jobs -p)' EXIT; hack/test.sh steady -vet=off -timeout 4h -count 10 -run '$(TEST)' $(PKG)

MINUTES ?= 30
WITHOUT ?=

.PHONY: soak
soak: binaries ## restart receivers for MINUTES=30 and count what a client sees (WITHOUT=readiness, preStop, drain-wait, both-waits, connection-close)
	go run ./test/soak/cmd/soak -minutes $(MINUTES) -without '$(WITHOUT)'

OUTAGES ?= 10s,60s,10m

.PHONY: missed
missed: binaries ## no receiver can record deliveries for OUTAGES=10s,60s,10m; fails when one does not run once within a minute of the end (GitLab: two)
	go test ./test/e2e -run '^(TestUndeliveredEventsRunAfterOutage|TestGitLabRedeliversUndelivered)$$' -v -timeout 40m -missed '$(OUTAGES)'

.PHONY: unit
unit: ## run the tests that need no cluster
	hack/test.sh unit -vet=off $$(go list ./... | grep -v -e /pkg/client/ $(with_cluster)) # golangci-lint runs vet

.PHONY: race
race: ## run the tests of pkg/ with the race detector, which needs a C compiler (nightly; not part of make test)
	@command -v $(firstword $(shell go env CC)) >/dev/null || { echo 'make race needs a C compiler, because the race detector needs cgo: install gcc, or set CC' >&2; exit 1; }
	CGO_ENABLED=1 go test -race -timeout 60m $(shell go list ./pkg/... | grep -v -e /pkg/client/)

.PHONY: bench-plan
bench-plan: binaries ## print time, calls and sizes of events with 1, 10, 100, 200 PipelineRuns (BENCH="-git-delay=200ms")
	go run ./test/bench/cmd/bench -runs 1,10,100,200 -only '^runs$$' $(BENCH)

SECONDS_EACH ?= 60
RATES ?= 1,5,20
REPOSITORIES ?= 100,1000,10000
SETTLED ?= 1000,100000
ONLY ?= .

.PHONY: bench
bench: binaries ## measure what users and operators notice, into dist/bench.json (SECONDS_EACH=60, RATES=1,5,20, ONLY='^load-one', REPOSITORIES, SETTLED)
	go build -o dist/bench ./test/bench/cmd/bench
	dist/bench -seconds $(SECONDS_EACH) -rates '$(RATES)' -repositories '$(REPOSITORIES)' -settled '$(SETTLED)' -only '$(ONLY)' -json dist/bench.json

.PHONY: bench-page
bench-page: ## write the figures of dist/bench.json into docs/performance.md
	go run ./test/bench/cmd/bench -json dist/bench.json -page docs/performance.md

RATE ?= 5

.PHONY: profile
profile: binaries ## CPU, heap and mutex profiles of receiver and controller under RATE=5 pushes a second for SECONDS_EACH=60, into dist/profiles
	go build -o dist/bench ./test/bench/cmd/bench
	dist/bench -seconds $(SECONDS_EACH) -rates '$(RATE)' -profiles dist/profiles

FINDINGS ?= .

.PHONY: hostile
hostile: binaries ## play each attack for SECONDS_EACH=60 beside a tenant that pushes, after as much quiet (FINDINGS='^(2|14)$$')
	go run ./test/hostile/cmd/hostile -seconds $(SECONDS_EACH) -only '$(FINDINGS)'

.PHONY: corpus
corpus: binaries ## let a real Tekton write the statuses of failed PipelineRuns that pkg/status is tested with, and update their verdicts
	go test ./test/verdicts -update
	go test ./pkg/status -run TestVerdictsOnCorpus -update

.PHONY: every-call
every-call: binaries ## fail each call of an event in each way, and kill the controller at each (the ways take turns in make test-all, and a third of that is in make test)
	go test -timeout 80m ./test/e2e -run 'TestEveryCallFails|TestControllerKilledAtEveryCall' -v -every-class

SEED ?= 1

.PHONY: campaign
campaign: binaries ## MINUTES=30 of random deliveries, faults and kill -9, all of it from SEED=1; fails when an invariant is broken (ACTS=3,17 does these alone)
	go run ./test/campaign/cmd/campaign -seed $(SEED) -minutes $(MINUTES) -acts '$(ACTS)'

EVENTS ?= 200

.PHONY: limits
limits: MINUTES = 6
limits: binaries ## EVENTS=200 random deliveries of SEED=1 in MINUTES=6 while concurrency_limits change and controllers are killed at each kind of call; fails when more run than may, in the wrong order, something is pruned too early, or one of those calls was never made
	go run ./test/campaign/cmd/campaign -seed $(SEED) -minutes $(MINUTES) -limits $(EVENTS) -acts '$(ACTS)'

SCENARIOS ?= 100

.PHONY: oracle
oracle: binaries ## play SCENARIOS=100 of SEED=1 to Pipelines-as-Code itself and to Plumbline; fails for a difference that no page tells (ONLY=3,17 plays these alone)
	go -C test/oracle test -count 1 ./...
	go -C test/oracle/pac test -count 1 ./...
	go -C test/oracle build -o '$(CURDIR)/dist/oracle' .
	$(call foreground,dist/oracle -seed $(SEED) -scenarios $(SCENARIOS) -only '$(filter-out .,$(ONLY))')

REPOSITORIES ?= 200

.PHONY: migration
migration: binaries ## move REPOSITORIES=200 from Pipelines-as-Code to Plumbline and back and after finish, while commits are pushed, pull requests are opened and users comment, with processes of both killed; each event runs exactly once
	go -C test/oracle build -o '$(CURDIR)/dist/migration' ./migration
	$(call foreground,dist/migration -repositories $(REPOSITORIES))

MUTANTS ?= .

.PHONY: mutants
mutants: binaries ## break one invariant after the other, and require that a short campaign finds each (MUTANTS=<regular expression>)
	./hack/mutants.sh '$(MUTANTS)'

.PHONY: fuzz
fuzz: ## run every fuzz target for FUZZTIME (60s each; FUZZ=<regular expression> chooses some)
	./hack/fuzz.sh $(FUZZ)

.PHONY: lint
lint: ## check the budgets and rules of .golangci.yml, and the words, sentences, links and names of the pages
	$(call timed,lint,$(lint_tool) run)
	$(call timed,pages,go test -vet=off ./test/language -run Pages)

.PHONY: generate
generate: ## regenerate deep copies, clients, CRDs and docs/schema from pkg/apis, and docs/guarantees.md from the tests
	./hack/update-codegen.sh
	go test -vet=off ./test/language -run TestGuarantees -update

.PHONY: verify
verify: ## fail if generated code is out of date
	$(call timed,verify,./hack/update-codegen.sh --verify)

.PHONY: binaries
binaries: ## build etcd, Kubernetes and Tekton for the tests and the demo (once)
	$(call timed,binaries,go run ./test/cluster/cmd/cluster -build-only)

.PHONY: cluster
cluster: binaries ## start the test control plane for people; Ctrl-C ends it
	go build -o dist/cluster ./test/cluster/cmd/cluster
	$(call foreground,dist/cluster)

.PHONY: node
node: ## a real Kubernetes node on this machine (root, a few Debian packages): images, probes, Pod Security, failing pods, a rollout under deliveries (ONLY='memory|evicts', KEEP=1; docs/node.md)
	go build -o dist/node ./test/node
	$(call foreground,dist/node -only '$(ONLY)')

.PHONY: images
images: ## build the container images and their SBOMs into dist/images (OCI layout, SPDX; no daemon), for this machine or PLATFORMS=linux/amd64,linux/arm64
	./hack/images.sh

chart = go run -C hack/tools/chart .

.PHONY: chart
chart: ## check the Helm chart and package it into dist/ (VERSION=v0.1.0)
	$(chart) lint
	mkdir -p dist
	SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) $(chart) package -version $(or $(VERSION),v0.0.0) -out '$(CURDIR)/dist'

.PHONY: release
release: ## build a release of this commit into dist/release: VERSION=v0.1.0 (REGISTRY=ghcr.io/plumbline-ci/plumbline), and test it in a registry on loopback
	./hack/release.sh
	go -C hack/tools/ko test -count 1 ./release -release '$(CURDIR)/dist/release'

.PHONY: publish
publish: ## push images and chart of dist/release, and make the GitHub release VERSION=v0.1.0 of its files (docs/releases.md says how to log in)
	@[[ '$(VERSION)' == *-* ]] || grep -q '^## \[$(VERSION:v%=%)\] - 20' CHANGELOG.md || { echo 'CHANGELOG.md has no date for $(VERSION)' >&2; exit 1; }
	go -C hack/tools/ko run ./release push -dir '$(CURDIR)/dist/release' -version $(VERSION)
	find dist/release -maxdepth 1 -type f -exec gh release create $(VERSION) --verify-tag $(if $(findstring -,$(VERSION)),--prerelease) --notes-file dist/release/notes.md {} +

DB ?= https://vuln.go.dev

.PHONY: scan
scan: ## fail for vulnerabilities that the commands can reach and upstream has fixed (DB=https://mirror or file:///dir)
	go -C hack/tools/scan build -o '$(CURDIR)/dist/scan' .
	dist/scan -db $(DB) ./cmd/...

.PHONY: clean
clean: ## remove what was built here
	rm -rf dist
