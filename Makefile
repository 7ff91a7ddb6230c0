# Everything that a contributor or CI runs. make test installs Wine and mingw where it
# can; nothing else is installed except Go modules.

GO         ?= go
FUZZTIME   ?= 60s
BENCHTIME  ?= 1s
MUTATED    ?= ./sim/windows/hns ./sim/dataplane/vfp ./sim/dataplane/host ./sim/kube/kubeproxy
MUTATED_SINCE ?=
GREMLINS   ?= github.com/go-gremlins/gremlins/cmd/gremlins@v0.6.0
BENCHCOUNT ?= 3

.DEFAULT_GOAL := help
.PHONY: help run check test test-full bench bench-envelope bench-live live-programs fuzz mutation lint fmt analysis cluster upstream e2e cluster-binaries cluster-designs cluster-faults tutorial build install generate wine windows-binaries kube-proxy-differential dlls cross go

help: ## show the targets
	@awk 'BEGIN {FS = ":.*## "} /^[a-z0-9-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# go checks that the Go toolchain can build the module.
go:
	@command -v $(GO) >/dev/null 2>&1 || { \
	  echo "Go is missing: install Go $$(awk '$$1 == "go" {print $$2}' go.mod) or newer from https://go.dev/dl and put it on PATH" >&2; exit 2; }
	@want=$$(awk '$$1 == "go" {print $$2}' go.mod); have=$$($(GO) env GOVERSION 2>&1) || { \
	  echo "Go $$want or newer is needed: $$have" >&2; exit 2; }; \
	have=$${have#go}; have=$${have%% *}; \
	if [ "$$(printf '%s\n%s\n' "$$want" "$$have" | sort -t. -k1,1n -k2,2n -k3,3n | head -n 1)" != "$$want" ]; then \
	  echo "Go $$have is too old: go.mod asks for $$want or newer (https://go.dev/dl, or set GOTOOLCHAIN=auto)" >&2; exit 2; fi

run: build ## simulate all labs, check every claim, write out/report
	bin/winlab run

build: go ## build bin/winlab
	CGO_ENABLED=0 $(GO) build -o bin/winlab ./cmd/winlab

install: go ## install winlab into GOBIN
	CGO_ENABLED=0 $(GO) install ./cmd/winlab

# What make test runs of the pinned programs: the oldest and the newest kube-proxy. It does not
# build a cluster's programs, which cost two cores 20 minutes: tests that need them skip and name
# make cluster-binaries. make test-full builds everything.
TEST_PROGRAMS = windows-binaries/cni-plugins-0.8.6 windows-binaries/cni-plugins-1.9.1 windows-binaries/hcsshim-0.15.0 windows-binaries/hnslib-0.1.2 \
	windows-binaries/kube-proxy-1.20.15 windows-binaries/kube-proxy-1.36.3

# Vet has been run by lint; what a debugger reads is half of what linking a test costs.
GOTEST = $(GO) test -vet=off -ldflags=-w

check: lint ## lint and the tests that need no Wine, no cluster and no network: the inner loop
	$(GOTEST) -short -timeout 5m ./...

test: lint wine ## lint and the tests, with Windows programs, and a cluster if make cluster-binaries has run; of many versions the oldest and the newest
	@$(GO) run ./sim/real/pinned/pinbuild -if-wine $(addprefix fixtures/,$(TEST_PROGRAMS))
	$(GOTEST) -timeout 40m ./...
	cd conformance/e2e && $(GOTEST) -timeout 20m ./...

test-full: export WINLAB_FULL = 1
test-full: lint wine ## make test with all versions, settings and failures, and builds for macOS and Windows; nightly, before a release
	@$(GO) run ./sim/real/pinned/pinbuild -if-wine fixtures/windows-binaries/*/ $(addprefix fixtures/cluster-binaries/,$(CLUSTER_PROGRAMS))
	$(GOTEST) -timeout 80m ./...
	cd conformance/e2e && $(GOTEST) -timeout 40m ./...
	$(MAKE) cross

mutation: go ## what the tests of the packages MUTATED notice when their source is changed; MUTATED_SINCE=main: what differs from main only
	@code=0; for p in $(MUTATED); do \
	  $(GO) run $(GREMLINS) unleash --config internal/dev/gremlins.yaml --workers 2 --timeout-coefficient 20 $(if $(MUTATED_SINCE),--diff $(MUTATED_SINCE)) $$p || code=1; \
	done; exit $$code

lint: fmt analysis ## format, and one pass of the analyzers of vet and staticcheck and of complexity

fmt: go
	@files=$$(gofmt -l $$(git ls-files '*.go' 2>/dev/null || find . -name '*.go' -not -path './bin/*')); \
	if [ -n "$$files" ]; then echo "not formatted; run gofmt -w on:" >&2; echo "$$files" >&2; exit 1; fi

# One tool has all analyzers, and the go command caches what it says of each package. What
# is built for Windows only is looked at without building anything for Windows.
analysis: go
	@cd internal/dev/lint && $(GO) build -o ../../../bin/lint .
	$(GO) vet -vettool=$(CURDIR)/bin/lint ./...
	bin/lint windows ./...
	cd conformance/e2e && $(GO) vet -vettool=$(CURDIR)/bin/lint ./...
	cd internal/dev/lint && $(GO) vet -vettool=$(CURDIR)/bin/lint ./...

# Budgets are multiples of what a packet rewritten by hand costs on this machine, and of what
# tcprewrite (Debian, Ubuntu: tcpreplay) and Open vSwitch (openvswitch-switch) cost; without
# these their lines are left out. Exits 1 when a budget is exceeded.
bench: build ## measure beside tcprewrite and Open vSwitch, and print tables of measured against allowed
	@mkdir -p out
	@$(GO) test -run '^$$' -bench . -benchmem -benchtime $(BENCHTIME) -count $(BENCHCOUNT) ./internal/dev/bench/... ./sim/lab ./sim/lab/flow ./sim/windows/hcn ./internal/capture ./sim/dataplane/packet ./reports/clean > out/bench.txt || { cat out/bench.txt; exit 1; }
	@$(GO) test -run '^$$' -bench . -benchmem -benchtime 1x -count $(BENCHCOUNT) ./sim/lab/replay ./sim/lab/labfile ./sim/lab/cluster ./conformance/check ./reports/html ./sim/live >> out/bench.txt || { cat out/bench.txt; exit 1; }
	@code=0; $(GO) run ./internal/dev/bench/benchtable < out/bench.txt || code=1; echo; $(GO) test ./internal/dev/bench/growth -run '^TestGrowth$$' -v || code=1; echo; \
	$(GO) test ./internal/dev/bench/peers -timeout 60m -run '^TestPeers$$' -v -args -rounds $(BENCHCOUNT) || code=1; exit $$code

# The size for which Kubernetes is tested: 5,000 nodes, 150,000 pods, 10,000 Services.
bench-envelope: build ## time, memory and growth of a lab of 5,000 nodes and 10,000 Services, profiles in out/; half an hour, and gigabytes
	@mkdir -p out
	$(GO) test -run '^$$' -bench '^BenchmarkEnvelope$$' -benchtime 1x -o out/envelope.test -outputdir out -cpuprofile envelope-cpu.pprof ./internal/dev/bench -args -envelope -heap $(CURDIR)/out/envelope-heap.pprof
	$(GO) tool pprof -top -cum -nodecount 40 -show 'winlab|YAMLReader|json' out/envelope.test out/envelope-cpu.pprof
	$(GO) tool pprof -top -nodecount 25 -sample_index inuse_space out/envelope.test out/envelope-heap.pprof
	@code=0; $(GO) test ./internal/dev/bench/peers -timeout 60m -run '^TestPeers$$' -v -args -rounds 1 -envelope -only envelope || code=1; echo; \
	$(GO) test ./internal/dev/bench/growth -timeout 60m -run '^TestGrowth$$' -v -args -envelope || code=1; exit $$code

live-programs: go wine ## every design and incident up with kube-proxy.exe and the plugins that stay; some minutes
	@$(GO) run ./sim/real/pinned/pinbuild -if-wine fixtures/windows-binaries/*/
	$(GO) test -timeout 40m ./sim/live/agree -run '^TestPrograms' -all

bench-live: build ## throughput and round trips of labs that are up, beside a Linux bridge, Open vSwitch and mininet
	internal/dev/bench/live/run.sh bin/winlab

fuzz: go ## run every fuzz target for FUZZTIME (60s), one after another
	@set -e; grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n1 dirname | sort -u | while read -r dir; do \
	  for f in $$(grep -h -o '^func Fuzz[A-Za-z0-9_]*' "$$dir"/*_test.go | sed 's/^func //' | sort); do \
	    echo "== $$dir $$f"; \
	    $(GO) test "$$dir" -run '^$$' -fuzz "^$$f\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 10x < /dev/null; \
	  done; \
	done

cluster: go ## build bin/winlab-cluster, a Kubernetes cluster with simulated Windows nodes
	cd conformance/e2e && $(GO) build -o ../../bin/winlab-cluster ./cmd/winlab-cluster

upstream: cluster-binaries ## Kubernetes' own tests of SIG Windows and SIG Network on a simulated cluster; some hours on two cores
	@for p in nginx busybox nc; do command -v $$p >/dev/null || missing="$$missing $$p"; done; [ -z "$$missing" ] || { \
	  echo "pods of upstream's tests run these programs of this machine, and they are missing:$$missing (Debian, Ubuntu: nginx-light busybox-static netcat-openbsd)" >&2; exit 2; }
	cd conformance/e2e && $(GO) build -o ../../bin/ ./cmd/winlab-cluster ./cmd/winlab-upstream
	bin/winlab-cluster up -d conformance/e2e/labs/l2bridge.yaml --name upstream
	@kubeconfig=$$(bin/winlab-cluster kubeconfig --path --name upstream); code=0; \
	for suite in sig-windows sig-network; do bin/winlab-upstream --suite $$suite --kubeconfig $$kubeconfig --kubectl bin/kubectl --out out/upstream/$$suite || code=1; done; \
	bin/winlab-cluster down upstream; exit $$code

CLUSTER_PROGRAMS = kubernetes-1.37.0 etcd-3.7.0 coredns-1.15.0 metrics-server-0.9.0 kwok-0.8.0

cluster-binaries: go ## build the pinned programs of a cluster into the cache (or take them from it), bin/kubectl too; cold 20 minutes
	@$(GO) run ./sim/real/pinned/pinbuild -link bin/kubectl $(addprefix fixtures/cluster-binaries/,$(CLUSTER_PROGRAMS))

cluster-designs: go ## a cluster on every network design, and its flows made by real programs; DESIGNS="-components real -kubernetes 1.33.13"
	cd conformance/e2e && $(GO) test -timeout 60m ./cluster -run '^TestDesigns$$' -v -args -designs $(DESIGNS)

cluster-faults: go ## let programs, images, pods and nodes fail while winlab-e2e runs; seven minutes
	cd conformance/e2e && $(GO) test -timeout 20m ./cmd/winlab-e2e -run '^TestFaults$$' -v -args -faults

cross: go ## build winlab and winlab-e2e for macOS and Windows into out/cross; cold ten minutes
	@for os in darwin windows; do \
	  GOOS=$$os CGO_ENABLED=0 $(GO) build -o out/cross/$$os/ ./cmd/winlab && \
	  (cd conformance/e2e && GOOS=$$os CGO_ENABLED=0 $(GO) build -o ../../out/cross/$$os/ ./cmd/winlab-e2e) || exit 1; \
	done; ls out/cross/*

tutorial: go ## run the commands of docs/tutorial.md and compare what they print
	cd conformance/e2e && $(GO) test -timeout 20m ./cmd/winlab-cluster -run '^TestTutorial$$' -v

# The lab and the folder of make e2e. LIVE is what the labs have beside their models: real
# components and live flows where there is Wine, nothing where there is none.
E2E_LAB ?= fixtures/labs/l2bridge-flannel-host-gw.yaml
E2E_OUT ?= out/e2e
E2E_FLAGS ?=
LIVE ?= $(shell command -v wine >/dev/null 2>&1 && echo --components both --live)

e2e: go build ## the suite on a simulated cluster, and all labs, in one report: out/e2e/report/report.html; some 30 minutes
	@mkdir -p $(E2E_OUT)
	cd conformance/e2e && $(GO) build -o ../../bin/winlab-e2e ./cmd/winlab-e2e
	@echo "the labs: their models, $(if $(LIVE),real components and live flows,no Wine: no real components and no live flows)"
	@bin/winlab run fixtures/labs $(LIVE) -d $(E2E_OUT)/labs > $(E2E_OUT)/labs.txt; echo $$? > $(E2E_OUT)/labs.code; tail -n 1 $(E2E_OUT)/labs.txt
	@bin/winlab-e2e --provider simulated --lab $(E2E_LAB) --known conformance/e2e/known/simulated.yaml --out $(E2E_OUT)/cluster $(E2E_FLAGS) > $(E2E_OUT)/cluster.txt; echo $$? > $(E2E_OUT)/cluster.code
	@bin/winlab-e2e merge $(E2E_OUT)/labs $(E2E_OUT)/cluster --out $(E2E_OUT)/report; code=$$?; \
	echo "exit codes: labs $$(cat $(E2E_OUT)/labs.code), cluster $$(cat $(E2E_OUT)/cluster.code), together $$code"; \
	[ "$$(cat $(E2E_OUT)/labs.code)$$(cat $(E2E_OUT)/cluster.code)$$code" = 000 ]

wine: ## install Wine and mingw where that can be done (Debian, Ubuntu)
	@sim/real/wine/install.sh

windows-binaries: go ## build the pinned Windows binaries into the cache (or take them from it)
	@$(GO) run ./sim/real/pinned/pinbuild fixtures/windows-binaries/*/

kube-proxy-differential: go wine ## compare the model of kube-proxy with many real versions (VERSIONS="1.33.13 1.34.4"); hours the first time
	@fixtures/windows-binaries/differential.sh $(VERSIONS)

dlls: go ## build the DLLs through which Windows programs reach winlab's HNS into out/dlls
	@mkdir -p out/dlls
	@$(GO) run ./cmd/winlab hns dlls out/dlls

generate: go ## write the parts of docs/ that come from the program
	$(GO) test ./cmd/winlab -run '^TestDocs$$' -update
	$(GO) run ./internal/dev/docsgen
