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
//	  features      name → {"off": share of clients from 0 to 1}; "*" is everything
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
// [Pumpkin.Admin] serves, to bearers of the token:
//
//	PUT    /items/{id}  replaces the item; 200 with what came of it
//	DELETE /items/{id}  204 always, whether the item was there or not; refusal ends at once
//	GET    /items/{id}  one item with its private fields, or 404
//	GET    /items       all of them
//
// The body of PUT is a JSON object of the public fields an operator may choose (severity and message are required; url,
// link_text, dismissible, recover_spread, features), plus
//
//	ttl      Go duration text, above 0 and at most 24h; absent means 1h
//	reason   why, for the log; required, never public
//	ticket   optional, never public
//
// ?dry_run=1 changes nothing and answers with the document that would result. Features that include "*" need ?confirm=all
// (a dry run does not). If-Match with the rev of the document ("7" or "<epoch>.7", as in the ETag of every admin answer)
// refuses a PUT that was made looking at something older; If-None-Match: * only creates.
//
// Refusals are application/problem+json with a reason: 400 malformed_json; 401 unauthorized; 403 cross_origin; 404
// not_found; 405 method_not_allowed; 412 stale_rev, exists; 413 body_too_large; 415 not_json; 422 for everything that is
// understood and not allowed (see [Reason]); 429 too_many_failures, which never meets a right token.
//
// # Invariants and bounds
//
// A refused write changes nothing. The same PUT twice changes neither rev nor notice_rev, only the expiry. A poll costs
// the handler no allocation and takes no lock, and neither does FeatureOff. There is one timer, for the next expiry; an item that
// has expired refuses nobody, even should the timer be late. Time is the process's monotonic clock: a step of the wall
// clock neither ends an item nor prolongs it.
//
// # Not in here
//
// The state lives in this process: another one has another epoch, and a restart begins empty. No HTML in messages, ever.
// No long poll and no event stream: held connections are what an overloaded service cannot bear.
package pumpkin
