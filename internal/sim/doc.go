// Package sim is a network in virtual time. It drives pure engines around an
// event queue: each port has an engine, links between ports lose, duplicate,
// reorder, delay and corrupt packets as told, and everything follows from the
// seed. Nothing sleeps, so a second of traffic takes what its packets cost.
package sim
