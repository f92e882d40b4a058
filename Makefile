# Everything a contributor needs. `make test` runs every test and needs only Go, make and apt-get (or Chromium and Redis
# already installed).

.PHONY: all test check deps bench bench-suite bench-peers bench-overload tour screenshot fmt

all: test

# deps installs the two real programs that tests run against. Where there is no apt-get, the tests that need them fail with
# a sentence that says what to install.
deps:
	@.ci/deps

check:
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); if [ -n "$$unformatted" ]; then echo "not gofmt-clean:"; echo "$$unformatted"; exit 1; fi
	go vet ./...
	go tool staticcheck ./...
	go -C bench/peers vet ./...
	staticcheck=$$(go tool -n staticcheck) && cd bench/peers && $$staticcheck ./...

test: deps check
	go test -count=1 -run Allocate ./shed
	go test -race -count=1 -timeout 20m ./...
	go -C bench/peers test -count=1 -timeout 10m ./...

# bench prints what one decision costs; quote medians, these figures move with the machine.
bench:
	go test -run '^$$' -bench . -benchmem -count 5 ./limits ./queue ./limits/concurrency ./shed ./middleware

# bench-suite plays every scenario with every arm, in virtual and in real time (some 40 minutes), and writes a report; ARGS=-quick
# stays in virtual time and takes some ten seconds.
bench-suite:
	go run ./bench suite -html bench-suite.html -json bench-suite.json $(ARGS)

# bench-peers and bench-overload put this library beside others; bench/peers/README.md says what they measure. The first takes
# 4 minutes, the second 12; ARGS=-quick gives a look in half a minute.
bench-peers:
	go -C bench/peers run ./rules $(ARGS)
	go -C bench/peers run ./cost $(ARGS)

bench-overload:
	go -C bench/peers run ./overload $(ARGS)

# tour plays the main scenarios against the demo and checks them; it needs a machine that is not busy.
tour:
	go run ./examples/demo -tour

# screenshot makes the README's picture of the live page.
screenshot:
	go run ./examples/demo/screenshot -o docs/demo.png

fmt:
	gofmt -w $$(git ls-files '*.go')
