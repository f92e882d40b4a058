// Command bench answers two questions: how does a service do under load, and does Spillway do what it claims?
//
//	go run ./bench list                                          the scenarios, with their criteria
//	go run ./bench run -target URL -rate 200 -duration 30s       load on your own server
//	go run ./bench run -scenario preproduction -target URL       the three checks to run before each release
//	go run ./bench run -scenario step [-mode handler|socket]     a scenario in real time against the built-in app
//	go run ./bench sim -scenario step -seed 1                    the same in virtual time: deterministic to the byte
//	go run ./bench sim -scenario retry-storm -map                how long recovery takes, for many loads and triggers
//	go run ./bench sweep -scenario sweep                         goodput and latency against offered load; -knee finds the knee
//	go run ./bench suite [-quick]                                all scenarios, all arms, one verdict; in full some 16 minutes
//	go run ./bench soak [-duration 10m]                          0.9 of the capacity in real time: nothing may grow
//	go run ./bench speed                                         what bench itself can do: arrivals and simulated requests per second
//	go run ./bench bars [-day]                                   the gate's whole matrix as a table, medians of nine seeds
//	go run ./bench gameday [-quick] [-html FILE]                  two gateways, everything on, everything broken once
//	go run ./bench compare A.json B.json                         is B better than A, or is it noise?
//	go run ./bench report -html FILE RESULT.json                 the result as one file that needs no network
//
// Exit codes: 0 everything passed, 1 a criterion failed, 2 wrong usage, 3 the run is invalid and says nothing.
//
// # Words
//
//	C             capacity: slots / service time of the app
//	D             deadline: an answer counts only within D of its scheduled time
//	asked         what the schedule says; sent is what left the generator, lag how much later than scheduled
//	latency       from the scheduled time, so that a server that stalls cannot hide it (no coordinated omission)
//	goodput       answers within D, as a share of what was asked or, if that is less, of C
//	admitted      answers and timeouts: refusals are quick and would flatter every percentile
//	arm           what stands in front of the app: none, a static limit, or spillway
//	control       a row that must come out badly for an arm without protection, or the scenario proves nothing
//	pending       a row whose capability does not exist yet; it leaves the exit code alone, and fails once it passes
//
// # How it measures
//
// Load is open: a seeded schedule says when each request leaves, whatever became of those before. A run is invalid, and has
// no verdict, when less than 99 % of it left, or when 1 % left more than a tenth of D late. The app's capacity is slots that
// sleep, not CPU, so that generator and app can share a machine. In virtual time (sim) the very code of package shed runs in
// an event heap. A whole suite plays every scenario for which that means something in process and over sockets too, the same
// seed, and holds the forms against each other: goodput has to agree within the scenario's margin, and every criterion about
// Spillway has to hold in each form.
//
// # Where to look
//
// scenarios holds the claims as data. All else is in internal: schedule turns them into arrivals, app is what is protected, arms and sim put the arms
// in front of it in real and in virtual time, load is the generator, measure records, judge gives verdicts, results and
// report write them down, on what page draws. gameday is a day of its own: real programs, and page for its report.
package main
