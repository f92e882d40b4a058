# Everything a contributor needs. `make test` runs every test and needs only Go, make and apt-get (or what .ci/deps
# installs with it, already there).

.PHONY: all test check deps bench bench-suite bench-peers bench-redis bench-overload bench-overload-real tour gameday screenshot fmt

all: test

# deps installs the real programs that tests run against. Where there is no apt-get, the tests that need them fail with
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
	go test -count=1 -run Allocate ./shed ./middleware/internal/identity
	go test -race -count=1 -timeout 20m ./...
	go run ./bench suite -quick
	go -C bench/peers test -count=1 -timeout 10m ./...
	.ci/gameday

# bench prints what one decision costs; quote medians, these figures move with the machine.
bench:
	go test -run '^$$' -bench . -benchmem -count 5 ./limits ./queue ./limits/concurrency ./shed ./middleware

# bench-suite plays every scenario with every arm, in virtual and in real time (some 16 minutes), and writes a report; ARGS=-quick
# stays in virtual time and takes some ten seconds.
bench-suite:
	go run ./bench suite -html bench-suite.html -json bench-suite.json $(ARGS)

# The comparisons with other libraries; bench/peers/README.md says what they measure. bench-peers is what decisions and middlewares cost, takes 5
# minutes and wants a quiet machine; ARGS=-quick gives a look in half a minute. bench-overload is what overload controls achieve, in
# virtual time: 2 minutes, on any machine. bench-overload-real is the same by the clock: 12 minutes on a quiet machine.
bench-peers:
	go -C bench/peers run ./rules $(ARGS)
	go -C bench/peers run ./cost $(ARGS)
	go -C bench/peers run ./http $(ARGS)
	go -C bench/peers run ./http -loopback $(ARGS)

# bench-redis is what a shared decision costs, on a redis-server that it starts: 4 minutes, and wants a quiet machine.
bench-redis:
	go -C bench/peers run ./redis $(ARGS)

bench-overload:
	go -C bench/peers/overload test -count=1 -timeout 30m -run TheMatrixInVirtualTime -matrix

bench-overload-real:
	go -C bench/peers run ./overload $(ARGS)

# tour plays the main scenarios against the demo and checks them; it needs a machine that is not busy.
tour:
	go run ./examples/demo -tour

# gameday plays a bad day against two gateways; docs/gameday.md says how. ARGS=-quick takes 4 minutes instead of 15, and is what
# make test plays (.ci/gameday); ARGS="-soak 10m" looks whether anything grows.
gameday: deps
	go run ./bench gameday -html gameday.html $(ARGS)

# screenshot makes the README's picture of the live page.
screenshot:
	go run ./examples/demo/screenshot -o docs/demo.png

fmt:
	gofmt -w $$(git ls-files '*.go')
