// Package redispumpkin shares the state of a pumpkin between instances through Redis: a banner that goes up at one goes up at
// all of them.
//
//	p, err := pumpkin.New(pumpkin.Config{Token: token})
//	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379", ContextTimeoutEnabled: true, MaxRetries: -1})
//	shared, err := redispumpkin.Join(p, redispumpkin.Config{Client: client})
//	defer shared.Close() // before p and the client
//
// # What it promises
//
// A change is known to all instances as soon as Redis has told them, well below a second, and after one poll (3 s ± 20 %) where
// the message was lost: a message is only a hint to look. Writes are compared and set in one step, so of two that race the later
// one is judged anew on what the earlier one has left, and both stand.
//
// Nothing that Redis loses ends a banner. The stored state is never deleted and has no expiry, so that a missing key always
// means that it was lost: then it is stored again by the instances, as they know it, under a new epoch and a higher rev. The same
// happens where Redis has gone back to an older state or comes back with a different one (a failover, a restored copy): items
// that are not there any more, and that nobody has ended, are put back. An instance that knows nothing stores nothing.
//
// While Redis cannot be asked, instances go on with what they know: items start and end at their time. What is written then is
// written at that instance alone, marked (202, applied "local", pumpkin.Status.Unshared) and joined with what the others did
// when Redis is back: of each item the newest write counts, which compares the clocks of instances with each other.
//
// With Config.SnapshotFile, an instance that starts while Redis is away begins with what it knew last. Redis is no condition of
// readiness: Join succeeds without it.
//
// # In Redis
//
//	{pumpkin:NAMESPACE}:state    hash: epoch, rev (grows with every stored change, unlike the document's), payload (JSON)
//	{pumpkin:NAMESPACE}:ballots  hash: instance → until when, and its votes; see Store.Vote
//	{pumpkin:NAMESPACE}:changes  channel
//
// An access list needs ~{pumpkin:*} &{pumpkin:* +hmget +hset +hgetall +hdel +pexpire +time +publish +subscribe +evalsha +eval
// +ping, and in a cluster +cluster|slots. Client-side caching is not used.
package redispumpkin
