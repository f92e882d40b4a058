// Package configfile answers the question: what does the YAML file say? It reads one file into a shed.Config, laid over the
// program's own, and refuses a file that is wrong anywhere.
//
// # Words
//
// A section is a top-level key. The file replaces the program's configuration section by section, see Parse. A key that is
// missing in a section that is there takes the library's default. docs/configuration.md lists every key, and schema.json
// (Schema) says the same to editors.
//
// # Invariants
//
// Nothing is guessed and nothing is ignored. A key that is unknown, twice there or of the wrong type is a mistake; so are two routes
// whose patterns conflict, bounds that contradict each other, and what can never apply. What merely does nothing is a warning, see
// Config.Warnings. A mistake is
//
//	PATH:LINE:COLUMN: what; how to mend
//
// on one line, all mistakes are reported together in the order of the file, and a file with a mistake yields no
// configuration at all. Whatever the bytes are, Parse returns: it does not panic, and its errors hold no control characters
// of the file.
//
// # While the program runs
//
// Watch follows a file: what is written there comes into force a second after it has come to rest, or at SIGHUP, whole or not
// at all. See shed.Shedder.Reload for what a running program keeps.
//
// # Bounds
//
// A file is at most 1 MiB of UTF-8 in at most 30 000 tokens, nested at most 16 levels, with at most 100 limits and 1000
// routes. Anchors, aliases, merge keys, tags and several documents are refused, so a small file cannot grow into a large
// configuration.
//
// # Not here
//
// Reading the admin token, serving the admin endpoints, listening: programs do that. The file has no templates, includes or environment variables.
package configfile
