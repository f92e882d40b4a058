//go:build race

package main

// raceDetector tells that everything is ten times slower, so that the whole suite is left to runs without it.
const raceDetector = true
