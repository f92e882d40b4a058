// Package echomw answers the question: how does a shedder's decision reach a client of an Echo v4 application?
//
// [Shed] is Echo's form of middleware.Shed, with the same identities, routes, fields and documents; read there what they
// mean. What is Echo's own:
//
//   - A refusal is returned as an *echo.HTTPError whose fields are already set on the response, so that the application's
//     error handler writes it, once, and middleware further out sees the error. Its Message is a middleware.Problem, which
//     Echo's default handler sends as application/problem+json; its Internal error is the *shed.Rejection. An error handler
//     of your own that answers in another format must set Content-Type itself.
//   - A request whose client went away while it waited ends without an error; its status is 499 and nothing else.
//   - A request that matches none of the shedder's patterns has Echo's own path, such as /users/:id, for a route name.
//   - Client addresses come from shed.Clients, not from c.RealIP(): Echo's extractor knows no prefixes of IPv6 and no port
//     in X-Forwarded-For.
//
// Put it in e.Use, inside of Recover, Logger and CORS. In e.Pre it works, but Echo has no path there yet. Echo runs the
// middleware of e.Use on 404 and 405 too, so those are limited as well.
package echomw
