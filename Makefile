# SoftVPI: `make run` shows it, `make test` checks it. Everything needs Go; nothing else has to be installed.

GO      ?= go
BIN     := bin/softvpi
PLATFORMS := linux/amd64 linux/arm64 windows/amd64 darwin/arm64
# A number of inputs, not a time: go1.26 may report a fuzz run that its time ended as
# failed (golang/go#75804).
FUZZTIME ?= 20000x
REVISION := $(shell git describe --always --dirty 2>/dev/null)

# Options of go test, such as -count=1 or -v.
TESTFLAGS ?=
# Where nothing is measured, the profile of cmd/softvpi stays out: with it go compiles every package that the program uses once more for
# the program alone (1,000 of them, for each platform). What make build and make interop run has it.
NOPROFILE := -pgo=off
# make lint vets everything in full; go test would look for some of it again.
TESTBUILD := $(NOPROFILE) -vet=off
# How many packages' tests run at once within make test-unit: many of them wait most of the time. Those that take longest begin first.
UNITJOBS ?= 6
LONGEST := ./internal/device ./internal/driver ./internal/transport ./internal/simulate ./internal/link/udp ./internal/fabric/live ./nd
# And within make test-system: those that are not marked as needing the machine for themselves (internal/testbed/systemtest).
SYSTEMJOBS ?= 1

# How often which programs of others were run again, and why (internal/testbed/retry).
RETRIES := $(CURDIR)/bin/retries
PRINTRETRIES = if [ -s $(RETRIES) ]; then sort $(RETRIES) | uniq -c; else echo "no program was run again"; fi

# Options of softvpi bench, such as --rounds 5 --json FILE.
BENCHFLAGS ?=

export CGO_ENABLED = 0

.DEFAULT_GOAL := help
.PHONY: help build site package check-package run test test-unit test-system soak packages race bench profile bench-rxe bench-loss bench-simulate interop lint fuzz cross clib check-clib clean

help:
	@echo "make run     two adapters, a connection with checked data, bandwidth and latency"
	@echo "make test    all tests: test-unit, those within one process (1.5 to 4 minutes on two processors), and"
	@echo "             test-system, those of processes, namespaces, browsers and others' programs"
	@echo "make race    all tests under the race detector (needs a C compiler)"
	@echo "make bench   measure, next to TCP on the same path"
	@echo "make profile take anew what the compiler knows of the data path (root; some minutes)"
	@echo "make bench-rxe   measure next to Linux Soft-RoCE at native speed (root, Debian; builds a kernel once)"
	@echo "make bench-loss  the same while packets are lost, in a virtual machine"
	@echo "make bench-simulate  simulations compared with ns-3"
	@echo "make interop against Linux Soft-RoCE in a virtual machine (root, Debian; several minutes)"
	@echo "make lint    gofmt, go vet, staticcheck"
	@echo "make soak    random faults under traffic whose data is checked, for SOAK ($(SOAK))"
	@echo "make fuzz    every fuzz target, FUZZTIME inputs each ($(FUZZTIME))"
	@echo "make cross   build for $(PLATFORMS)"
	@echo "make build   bin/softvpi"
	@echo "make check-clib  check those libraries with programs in C, also with sanitizers"
	@echo "make site    bin/site: the documents as web pages, with a search; they need no server"
	@echo "make package  bin/package: .deb, .rpm, .tar.gz, an image for containers, a zip for Windows"
	@echo "make image   the image alone, for podman load and docker load"
	@echo "make check-package  install that of Debian in a copy of this system, and use it there (root)"
	@echo "make clib    bin/clib: the C libraries for unmodified verbs programs (needs a C compiler; Linux)"

build:
	@mkdir -p bin
	$(GO) build -trimpath -buildvcs=false -ldflags "-X main.revision=$(REVISION)" -o $(BIN) ./cmd/softvpi

# C stands below clib/ alone, and nothing in the Go module needs it.
clib:
	@$(MAKE) -C clib
	@$(MAKE) -C clib/preload

# Programs in C that check the C libraries, also with sanitizers. Says in one line when it cannot run here, and then succeeds.
check-clib: build
	@if [ "$$(uname -s)" = Linux ] && command -v $${CC:-cc} >/dev/null 2>&1; then $(MAKE) -C clib -j $$(nproc 2>/dev/null || echo 2) built && $(MAKE) -C clib check check-sanitized; \
	else echo "check-clib: skipped, it wants Linux and a C compiler (cc)"; fi
	@if [ "$$(id -u)" = 0 ] && command -v ibv_rc_pingpong setpriv >/dev/null && [ -e bin/clib/libibverbs.so.1 ] && \
		unshare --mount --pid --fork --net --ipc --uts mount --make-rprivate / 2>/dev/null; \
	then out=$$(timeout 300 examples/container/try.sh 2>&1) && echo "container  ok" || { echo "$$out"; exit 1; }; \
	else echo "check-clib: the container is not tried, which wants root and namespaces"; fi

run: build
	@$(BIN) run-demo

test:
	@$(MAKE) --no-print-directory test-unit
	@$(MAKE) --no-print-directory test-system

# The documents, manual pages and the description of the management interface as web pages: a browser opens bin/site/index.html.
site: build
	@rm -rf bin/site.made; mkdir -p bin/site.made/man
	@$(BIN) man --markdown --directory bin/site.made/man >/dev/null
	@$(GO) run ./internal/api/openapi >bin/site.made/openapi.json
	@$(GO) run -C site . -root "$(CURDIR)" -man "$(CURDIR)/bin/site.made/man" -openapi "$(CURDIR)/bin/site.made/openapi.json" \
		-out "$(CURDIR)/bin/site"

# Packages for Debian and for distributions with RPM, and a tar file, all of the same contents, and a zip file for Windows: the same bytes
# whenever they are made of the same sources. The C libraries are in them where there is a C compiler.
package:
	@packaging/package.sh "$(REVISION)"

image:
	@packaging/package.sh "$(REVISION)" image

# Checks the package for Debian with lintian, installs, upgrades, downgrades and removes it in a copy of this system, and uses it there, as it
# does that for RPM. Says in one line what cannot run here, and then succeeds.
check-package: package site
	@if $(GO) list ./... | grep "^$$($(GO) list -m)/bin/"; then echo "check-package: what was laid out counts as packages of the sources"; exit 1; fi
	@packaging/packages.sh
	@packaging/lint.sh bin/package & lint=$$!; status=0; \
	for m in packaging deviceplugin site test/grafana; do $(GO) test -C $$m $(TESTBUILD) ./... || status=1; done; \
	wait $$lint && exit $$status
	@packaging/try.sh bin/package

# Tests within one process, never tried twice. They need nothing beside Go. Linking takes nearly half of their time, of which the collector
# takes a tenth at its usual pace. Tests that are marked as parallel wait most of the time, so more of them run at once than there are
# processors.
test-unit: export GOGC = 400
test-unit:
	$(GO) test -short -p $(UNITJOBS) -parallel $(UNITJOBS) $(TESTBUILD) $(TESTFLAGS) $(LONGEST) \
		$$($(GO) list ./... | grep -v '^[^/]*/[^/]*/[^/]*/test/')

# Tests of processes, network namespaces, browsers and the distribution's programs, SYSTEMJOBS packages at a time
# (internal/testbed/systemtest). Those in network namespaces need root and skip without it; the one that clicks through
# the device manager needs Chromium, those of unmodified verbs programs need the programs and a C compiler, those of the
# InfiniBand tools ibsim, OpenSM and infiniband-diags, which are installed where that can be.
test-system: packages
	@[ "$$(id -u)" = 0 ] || echo "make test-system: not root, so the tests in network namespaces are skipped"
	@mkdir -p bin/figures; rm -f $(RETRIES)
	@status=0; GO="$(GO)" SOFTVPI_TEST_FIGURES=$(CURDIR)/bin/figures SOFTVPI_TEST_RETRIES=$(RETRIES) \
		$(GO) run ./internal/testbed/systemtest/marked -jobs $(SYSTEMJOBS) -timeout 30m $(TESTBUILD) $(TESTFLAGS) || status=$$?; \
	cat bin/figures/* 2>/dev/null; $(PRINTRETRIES); exit $$status

packages:
	@test/web/packages.sh
	@test/verbs/packages.sh
	@test/diags/packages.sh
	@test/ethernet/packages.sh
	@test/monitoring/packages.sh
	@test/shells.sh

# The race detector is the one thing here that needs cgo. It slows programs down many times, so tests wait for longer.
race:
	@if command -v $${CC:-cc} >/dev/null 2>&1; then CGO_ENABLED=1 SOFTVPI_TEST_PATIENCE=5 $(GO) test -race -timeout 60m $(TESTBUILD) $(TESTFLAGS) ./...; \
	else echo "race: skipped, no C compiler (cc) found"; fi

# gRPC is in a module of its own: nothing else here depends on it, and without it the rest is measured all the same.
bench: build
	@$(GO) build -C test/grpcbench -trimpath -buildvcs=false -o $(CURDIR)/bin/grpcbench . || { rm -f bin/grpcbench; echo "bench: without gRPC, which could not be built"; }
	@$(BIN) bench $$([ ! -x bin/grpcbench ] || echo --grpc bin/grpcbench) $(BENCHFLAGS)

# go build finds cmd/softvpi/default.pgo by itself: what took the processor's time in both sides of the benchmarks, and in simulations
# (docs/performance.md, "What the compiler knows").
profile: build
	@rm -rf bin/profiles; mkdir -p bin/profiles
	SOFTVPI_PROFILES=$(CURDIR)/bin/profiles $(BIN) bench --rounds 1 --seconds 0.6 --part veth9000 --part veth1500 --part loopback --part attached
	for lean in false true; do for _ in 1 2 3 4 5; do for f in incast-2 leaf-spine-alltoall; do \
		SOFTVPI_PROFILES=$(CURDIR)/bin/profiles $(BIN) simulate examples/simulate/$$f.json --processors 1 --quiet --set lean=$$lean \
			--set duration=100ms >/dev/null || exit 1; done; done; done
	$(GO) tool pprof -proto -output cmd/softvpi/default.pgo bin/profiles/*.pprof

# Each says in one line when it cannot run here, and then succeeds.
bench-rxe: build
	@test/rxebench/run.sh $(BIN) $(BENCHFLAGS)

bench-loss: build
	@GO="$(GO)" test/rxebench/loss.sh $(BIN) $(BENCHFLAGS)

bench-simulate: build
	@SOFTVPI=$(BIN) test/simulate/bench.sh

# Says in one line when it cannot run here, and then succeeds.
interop:
	@mkdir -p bin; rm -f $(RETRIES)
	@status=0; GO="$(GO)" SOFTVPI_TEST_RETRIES=$(RETRIES) test/interop/run.sh || status=$$?; $(PRINTRETRIES); exit $$status

lint:
	@out=$$(gofmt -l $$(git ls-files '*.go')); if [ -n "$$out" ]; then echo "not gofmt-ed:"; echo "$$out"; exit 1; fi
	git ls-files '*.go' | xargs $(GO) run ./internal/testbed/columns
	$(GO) vet $(NOPROFILE) ./...
	GOOS=windows GOARCH=amd64 $(GO) vet $(NOPROFILE) ./...
	GOOS=darwin GOARCH=arm64 $(GO) vet $(NOPROFILE) ./...
	@echo "staticcheck ./..."; GOFLAGS="$$($(GO) env GOFLAGS) $(NOPROFILE)" $(GO) tool staticcheck ./...
	$(GO) vet -C test/grpcbench ./...
	@echo "staticcheck test/grpcbench"; check=$$($(GO) tool -n staticcheck) && cd test/grpcbench && $$check ./...
	$(GO) vet -C test/grafana ./...
	@echo "staticcheck test/grafana"; check=$$($(GO) tool -n staticcheck) && cd test/grafana && $$check ./...
	$(GO) vet -C deviceplugin ./...
	@echo "staticcheck deviceplugin"; check=$$($(GO) tool -n staticcheck) && cd deviceplugin && $$check ./...
	$(GO) vet -C packaging ./...
	$(GO) vet -C site ./...
	@echo "staticcheck site"; check=$$($(GO) tool -n staticcheck) && cd site && $$check ./...
	@echo "staticcheck packaging"; check=$$($(GO) tool -n staticcheck) && cd packaging && $$check ./...

# With the settings of the test a fault takes 2 to 5 seconds: an hour has some 1,000 of them.
SOAK ?= 1h
soak:
	SOFTVPI_SOAK=$(SOAK) $(GO) test ./internal/driver -run '^TestSoak$$' -v -timeout 0

fuzz:
	@set -e; for p in $$($(GO) list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' ./...); do \
	  for t in $$($(GO) test -list '^Fuzz' $$p | grep '^Fuzz' || true); do \
	    echo "fuzz $$p $$t"; $(GO) test -run '^$$' -fuzz "^$$t\$$" -fuzztime $(FUZZTIME) $$p; done; done

cross:
	@set -e; for p in $(PLATFORMS); do echo "build $$p"; \
	  GOOS=$${p%/*} GOARCH=$${p#*/} $(GO) build -buildvcs=false $(NOPROFILE) ./...; done

clean:
	rm -rf bin
