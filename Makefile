# rota: build it, show it, prove it. `make` alone prints what there is.

SHELL := bash
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
CLANG := clang-19
CLANG_FORMAT := clang-format-19
CC := cc
CC_ARM64 := aarch64-linux-gnu-gcc

# An object serves every architecture: it finds the kernel's fields by BTF.
# The include path is for asm/types.h, which clang misses for this target.
# The same source gives the same bytes in every directory.
BPFFLAGS := -target bpf -O2 -g -mcpu=v3 -D__TARGET_ARCH_x86 -Wall -Werror \
	-ffile-prefix-map=$(CURDIR)=. -fdebug-compilation-dir=. \
	-I/usr/include/$(shell $(CC) -print-multiarch 2>/dev/null)
LOADFLAGS := -O2 -Wall -Wextra -Werror -static -pthread
GOBUILD := CGO_ENABLED=0 go build -trimpath -ldflags '-s -w -X main.version=$(VERSION)'

# The scheduler, what counts waits for a bench, and what finds who executes a function.
OBJECTS := internal/sched/rota.bpf.o bench/runnable/runnable.bpf.o internal/where/where.bpf.o
LOADS := $(patsubst lab/load/%.c,bin/load/%,$(wildcard lab/load/*.c))
LOADS_ARM64 := $(LOADS:bin/%=bin/arm64/%)
C_FILES = $(wildcard $(shell git ls-files -co --exclude-standard '*.c' '*.h'))
GO_FILES = $(wildcard $(shell git ls-files -co --exclude-standard '*.go'))
VM_FILES = $(shell git grep -l --untracked '^//go:build vm' -- '*_test.go')

# An older Go fetches the version that go.mod asks for.
ifneq ($(shell GOTOOLCHAIN=local go env GOVERSION 2>/dev/null | sed 's/go\([0-9]*\.[0-9]*\).*/\1/'),$(shell sed -n 's/^go \([0-9]*\.[0-9]*\).*/\1/p' go.mod))
export GOTOOLCHAIN ?= auto
endif

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup build demo test check format formatted lint generated unit vm arm64 \
	cost kernels deb generate clean FORCE

help: ## print this help
	@echo 'usage: make TARGET'
	@sed -n 's/^\([a-z0-9]*\):[^#]*## \(.*\)/  \1\t\2/p' $(firstword $(MAKEFILE_LIST)) | expand -t 14

## For everybody

demo: setup ## install what is needed, build, and compare the kernel's scheduler with rota in virtual machines
	@$(MAKE) --no-print-directory build
	bin/rota-lab run ping wake --sched kernel,rota --report out/demo

test: setup ## install what is needed and prove everything that can be proved
	@$(MAKE) --no-print-directory check

build: bin/rota bin/rota-lab $(LOADS) ## build the programs into bin/

setup: ## install what building and testing needs (apt, as root or with sudo)
	@.ci/setup

deb: bin/rota bin/arm64/rota ## pack rota as Debian packages into out/
	@packaging/debian/build bin/rota amd64 $(VERSION) out
	@packaging/debian/build bin/arm64/rota arm64 $(VERSION) out

clean: ## remove what make made
	rm -rf bin out $(OBJECTS)

## For those who change rota

check: ## what continuous integration runs: format, lint, generated files, unit tests, tests in virtual machines
	@for stage in formatted lint generated arm64 unit vm; do \
		echo "== $$stage"; $(MAKE) --no-print-directory $$stage || exit 1; done

format: ## format Go and C
	gofmt -w $(GO_FILES)
	$(CLANG_FORMAT) -i $(C_FILES)

formatted: ## check that Go and C are formatted
	@bad=$$(gofmt -l $(GO_FILES)); [ -z "$$bad" ] || { echo "not formatted (run make format):"; echo "$$bad"; exit 1; }
	@bad=$$(for f in $(C_FILES); do $(CLANG_FORMAT) $$f | cmp -s - $$f || echo $$f; done); \
		[ -z "$$bad" ] || { echo "not formatted (run make format):"; echo "$$bad"; exit 1; }

lint: $(OBJECTS) ## look for mistakes in Go without running it
	go vet ./... ./.ci/tally
	go vet -tags vm ./...
	go run $(STATICCHECK) -tags vm ./...

generate: $(OBJECTS) ## write the generated files anew
	go generate ./...

generated: $(OBJECTS) ## check that the generated files are what would be generated
	@before=$$(git diff | sha256sum); go generate ./... && [ "$$before" = "$$(git diff | sha256sum)" ] || \
		{ git diff --stat; echo "generated files differ from what is in the tree: commit what \"make generate\" writes"; exit 1; }

unit: $(OBJECTS) ## run the unit tests
	@mkdir -p out/test
	@set -o pipefail; go test -json -timeout 5m ./... ./.ci/tally | go run ./.ci/tally -o out/test/unit.json

vm: build arm64 ## run the tests in virtual machines
	@mkdir -p out/test
	@set -o pipefail; [ -z "$(VM_FILES)" ] || go test -json -tags vm -timeout 80m -p 1 -parallel 2 -count 1 \
		-run "^($$(sed -n 's/^func \(Test[A-Za-z0-9_]*\)(.*/\1/p' $(VM_FILES) | paste -sd '|'))$$" \
		$$(for f in $(VM_FILES); do echo ./$$(dirname $$f); done | sort -u) \
		| go run ./.ci/tally -o out/test/vm.json

arm64: bin/arm64/rota bin/arm64/rota-lab $(LOADS_ARM64) ## build the programs for arm64 into bin/arm64/

cost: build ## count the instructions of a turn anew, into docs/cost.json
	bin/rota-lab run cost --json docs/cost.json

# Also those that rota refuses: the tests boot them.
kernels: bin/rota-lab ## fetch the kernels that the lab boots (MIRROR=URI: from this Debian archive)
	bin/rota-lab kernels fetch $(if $(MIRROR),--mirror $(MIRROR)) $$(bin/rota-lab kernels | awk 'NR > 1 {print $$1}')

$(OBJECTS): $(wildcard bpf/*.c bpf/*.h)
	$(CLANG) $(BPFFLAGS) -c bpf/$(notdir $(@:.o=.c)) -o $@
	llvm-strip-19 -g $@

# Go knows best what is out of date.
bin/rota: $(OBJECTS) FORCE
	$(GOBUILD) -o $@ ./cmd/rota

bin/rota-lab: FORCE
	$(GOBUILD) -o $@ ./cmd/rota-lab

bin/arm64/rota: $(OBJECTS) FORCE
	GOARCH=arm64 $(GOBUILD) -o $@ ./cmd/rota

bin/arm64/rota-lab: FORCE
	GOARCH=arm64 $(GOBUILD) -o $@ ./cmd/rota-lab

bin/arm64/load/%: lab/load/%.c $(wildcard lab/load/*.h)
	@mkdir -p $(@D)
	$(CC_ARM64) $(LOADFLAGS) -o $@ $<

bin/load/%: lab/load/%.c $(wildcard lab/load/*.h)
	@mkdir -p $(@D)
	$(CC) $(LOADFLAGS) -o $@ $<

FORCE:
