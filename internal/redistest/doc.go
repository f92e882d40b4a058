// Package redistest starts real Redis processes for tests: a single server, a cluster of six, a master with a replica and
// three sentinels, and a proxy that loses or delays replies. They listen on free loopback ports, keep nothing on disk but a
// log in a directory of their own, and are gone when the test ends, also when the test binary is killed (on Linux).
//
// Shared and SharedCluster hand out one process for a whole test binary, which saves the start; a package that uses them
// ends them in its TestMain:
//
//	func TestMain(m *testing.M) { goleak.VerifyTestMain(redistest.M(m)) }
//
// A missing redis-server fails the test with a sentence that says how to get one. Nothing is skipped in silence.
package redistest
