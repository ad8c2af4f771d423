// Package sim is a network in virtual time. It drives pure engines with an event queue: of what arrives,
// and of when each engine wants to be called next. A port has an engine; links between ports lose,
// duplicate, reorder, delay, corrupt and slow down packets by the model of package impair; switches forward
// packets between the ports that are plugged in at them.
//
// Everything follows from the seed and from the order of calls. Nothing sleeps, so a second of traffic
// takes only as long as its packets take to process. A step costs the same however many ports there are,
// and a packet allocates nothing once the buffers of as many have been in use at the same time.
package sim
