// Package sim is a network in virtual time. It drives pure engines with an event queue: of what arrives,
// and of when each engine wants to be called next. A port has an engine; links between ports lose,
// duplicate, reorder, delay, corrupt and slow down packets by the model of package impair; switches forward
// packets between the ports that are plugged in at them.
//
// Ports that share nothing but packets may be added apart. While nobody looks at every packet and each takes some time,
// they then have their turns in windows, each some of its own one after the other, as far as nothing can arrive yet that
// others have not sent (window.go). What they see is the same as in strict order, to the byte.
//
// Everything follows from the seed and from the order of calls. Nothing sleeps, so a second of traffic
// takes only as long as its packets take to process. A step costs the same however many ports there are,
// and a packet allocates nothing once the buffers of as many have been in use at the same time.
package sim
