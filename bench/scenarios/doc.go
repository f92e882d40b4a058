// Package scenarios holds what bench measures, as data: each file is one claim about overload with the load that shows it
// and the bounds that it must keep. See the package bench for the definitions of the words.
//
// A file that is wrong anywhere is refused as a whole, with one line that says what and how to mend it.
package scenarios
