// Package pumpkin answers the question: what are clients told while something is broken?
//
// An operator raises an item: a short message in one or several languages, how severe it is, and the features that are off
// while it lasts. All items in force make one small document, the same bytes for everybody, that clients poll and show as
// a banner. What the document says is off, the server refuses with the same words ([Pumpkin.FeatureOff]), so clients that
// never poll shed load too. Every item expires by itself: nobody can forget a banner.
//
// # The document
//
// GET /pumpkin.json answers 200 or 304, with [Document] as its body:
//
//	schema          1
//	epoch           ULID: the lineage of the state; clients ignore an older one
//	rev             grows with every change of the public bytes within an epoch; clients ignore a lower one
//	active          whether any item is in force
//	poll_after      seconds until the next poll
//	default_lang    the language that every message has
//	items[]         at most 16, the most severe first
//	  id            the operator's key
//	  severity      minor, major, critical or maintenance
//	  message       language → plain text, at most 8 languages of 280 characters
//	  url           http or https, for the long story; absent when there is none
//	  link_text     what to show for url; absent when there is none
//	  dismissible   false only when the operator says so
//	  notice_rev    the rev at which what people see last changed; a longer TTL does not touch it
//	  recover_spread seconds over which clients spread their return
//	  features      name → {"off": share of clients from 0 to 1}; "*" is everything that is not exempt
//
// A client that remembers a dismissal keys it on epoch, id and notice_rev: revs begin again with a new epoch.
//
// The document is at most 4 KiB and holds nothing about who wrote it, why, when, or on which instance: equal state means
// equal bytes and an equal ETag, or a load balancer would end everybody's 304s.
//
// # Headers of the document
//
//	Cache-Control                 public, max-age=5, stale-if-error=86400
//	CDN-Cache-Control             max-age=5, stale-while-revalidate=30, stale-if-error=86400
//	ETag                          strong, from the SHA-256 of the body
//	Access-Control-Allow-Origin   *
//	Access-Control-Expose-Headers ETag, Date, Age, Retry-After
//	Cross-Origin-Resource-Policy  cross-origin
//	X-Content-Type-Options        nosniff
//
// Browsers get no stale-while-revalidate: they would show every banner one poll late. max-age is lower than 5 where
// [Config.PollAfter] is so short that a client would hit its own cache. OPTIONS answers 204, other methods 405.
//
// # The admin endpoint
//
// [Pumpkin.Admin] serves, to bearers of a token, and GET / to everybody who reaches it: a page for the person on call, which
// does all of this.
//
//	PUT    /items/{id}      replaces the item; 200 with what came of it, 202 when the shared store could not be asked
//	DELETE /items/{id}      204 always, whether the item was there or not; refusal ends at once
//	GET    /items/{id}      one item with its private fields, or 404
//	GET    /items           all of them, those that wait for their start included
//	PUT    /mode            the one big switch: {"on": true, "template": "site-down", "ttl": "30m", "reason": "…"}
//	DELETE /mode            switches it off; GET /mode tells how it stands
//	PUT    /force_off/{id}  {"ttl": "2h", "reason": "…"} keeps automation away from the item, or from all with *
//	DELETE /force_off/{id}  gives it back; GET /force_off lists them
//	GET    /templates       the prepared texts
//	GET    /audit?limit=n   who did what, the newest first
//
// The body of PUT /items/{id} is a JSON object of the public fields an operator may choose (severity and message are
// required; url, link_text, dismissible, recover_spread, features), plus
//
//	ttl        Go duration text, above 0 and at most 24h; absent means 1h
//	starts_at  RFC 3339 with an offset, at most 30 days ahead; the ttl counts from there; absent means at once
//	reason     why, for the audit trail; required, never public
//	ticket     optional, never public
//
// Its id and notice_rev may be there as they are in the document, so that an item can be put as it was read; they decide nothing.
//
// An answer has a warning where the item names a feature that no route of this process has ([Pumpkin.KnowFeatures]).
//
// ?dry_run=1 changes nothing and answers with the document that would result. Features that include "*" need ?confirm=all
// (a dry run does not, and neither does a prepared text that PUT /mode names). If-Match with the rev of the document ("7" or
// "<epoch>.7", as in the ETag of every admin answer) refuses a PUT that was made looking at something older;
// If-None-Match: * only creates.
//
// Refusals are application/problem+json with a reason: 400 malformed_json; 401 unauthorized; 403 cross_origin, wrong_host,
// read_only; 404 not_found; 405 method_not_allowed; 412 stale_rev, exists; 413 body_too_large; 415 not_json; 422 for
// everything that is understood and not allowed (see [Reason]); 429 too_many_failures, which never meets a right token.
//
// Tokens have names, which are the actors of the audit trail; only their digests are kept ([AdminTokens]). The endpoint
// belongs on a listener of its own: [ListenAdmin] refuses one that other machines can reach unless the operator has chosen
// a token. Everything that is done or refused, and what time does, is a [Record]: in the log, in memory, and in
// Config.AuditFile.
//
// # Who wins
//
// The break-glass file ([Config.File]) before force_off, before a person's item, before automation. The file works when the
// endpoint and the shared store are dead: it holds {"template": "site-down"}, or one item as PUT takes it, or {"items":
// {"ID": item, …}}, where {"items": {}} clears the board. While it is there, what it says is all that the public sees; a file
// that cannot be understood changes nothing. [Pumpkin.Raise] and [Pumpkin.Lower] are for automation: they never touch a
// person's item and always leave room for one.
//
// # Several instances
//
// A [Store] that is joined shares the [State]: writes go through it, and what others wrote comes in with [Pumpkin.Adopt].
// While it cannot be asked, writes are made here alone, marked, and merged later ([Merge], [Pumpkin.Resync]). Instances of
// equal state show equal bytes, also when items start and end.
//
// # Invariants and bounds
//
// A refused write changes nothing. The same PUT twice changes neither rev nor notice_rev, only the expiry. A poll costs
// the handler no allocation and takes no lock, and neither does FeatureOff. There is one timer, for what happens next: a
// start, an end, or the warning that four fifths of an item's time are over; an item that has expired refuses nobody, even
// should the timer be late. Time is the process's monotonic clock: a step of the wall clock neither ends an item nor
// prolongs it. All items, scheduled ones included, are at most 16 and fit into one document of 4 KiB, so that what was
// accepted is never dropped later.
//
// # Not in here
//
// Without a Store the state lives in this process: another one has another epoch, and a restart begins empty. No HTML in
// messages, ever.
// No long poll and no event stream: held connections are what an overloaded service cannot bear.
package pumpkin
