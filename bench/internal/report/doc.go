// Package report writes results down for people and for machines: one HTML file that needs no network and no script, JUnit
// XML, a table in Markdown, and lines that benchstat reads.
package report
