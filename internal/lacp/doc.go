// Package lacp is link aggregation control (IEEE 802.1AX-2014, clause 6.4) for the ports of a system, with the marker protocol (6.5): its
// responder, and its generator for who moves conversations. Ports of one key are a group, as the links of a bond are: they have one
// aggregator, to which those are attached whose partners are one system with one key. Others of the group stand by.
//
// It is pure: it is told the time, what arrived and which links are up, and hands back frames, which ports collect and distribute, and its
// next deadline.
//
// Files: system is what is called from outside; receive, periodic, selection, mux, transmit and marker are the state machines of the
// standard, by its names. Churn detection and version 2 (conversation-sensitive collection and distribution) are not there.
package lacp
