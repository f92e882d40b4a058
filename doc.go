// Package spillway is the root of a module that keeps Go HTTP services answering when too much arrives. There is no code
// here; the rooms are:
//
//   - [github.com/spillway-go/spillway/middleware] wraps net/http, and middleware/echomw wraps Echo: start there;
//   - [github.com/spillway-go/spillway/shed] decides whether a request may run now;
//   - [github.com/spillway-go/spillway/limits] counts how much a client may use over time, alone and without dependencies;
//   - [github.com/spillway-go/spillway/limits/concurrency] finds how many may run at once;
//   - [github.com/spillway-go/spillway/queue] orders those who wait;
//   - [github.com/spillway-go/spillway/health] tells how the process is;
//   - [github.com/spillway-go/spillway/pumpkin] tells clients what is broken.
//
// The program examples/complete has all of them in one file, to copy.
package spillway
