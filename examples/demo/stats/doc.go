// Package stats answers: what has the demo been doing for the last minute? It counts what admission control decides and
// how long answers take, closes a Tick five times a second, and keeps the last minute of ticks, ready encoded, for the live
// page. The page asks for the ticks after the last one it has, so an answer is small and costs a copy.
//
// Nothing here decides anything, and nothing here is kept per client.
package stats
