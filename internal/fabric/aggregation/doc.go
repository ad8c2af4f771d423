// Package aggregation lets nodes of an Ethernet fabric aggregate their links by LACP: the machines of package lacp at a switch, or at a
// host's end of several links, say which ports take frames and send some, and their data units leave and come by these ports.
package aggregation
