// Package sim is a network in virtual time. It drives pure engines with an event queue: each port has an
// engine; links between ports lose, duplicate, reorder, delay and corrupt packets as configured, and
// everything follows from the seed. Nothing sleeps, so a second of traffic takes only as long as its
// packets take to process.
package sim
