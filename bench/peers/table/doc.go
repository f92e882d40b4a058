// Package table prints what the comparisons measured: one aligned markdown table, the versions of everything in it, and
// the machine it was measured on. A figure without these three cannot be quoted, so they come from one place.
package table
