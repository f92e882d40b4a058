// Package operate is what the example programs have in common beside their work: reading flags and opening listeners with messages for a person,
// and the console that operators reach.
package operate
