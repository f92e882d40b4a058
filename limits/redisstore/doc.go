// Package redisstore answers the question: how much may a key use over time, when many processes share one quota?
//
// A [Store] keeps the balances of package limits in Redis. One decision is one call of one script, for all charges
// together: it reads, lets time pass, checks all, and takes all or nothing. The numbers are whole, the arithmetic is that of
// limits.Memory, and the clock is the server's.
package redisstore
