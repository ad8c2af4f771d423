// Package faults tests what a driver survives as a process of its own: being killed in the middle of changes, another
// driver on its state directory, a thousand clients of its management interface, readers that take nothing, requests
// that are too large. What its parts survive (a loss of power, disks that fill up, damaged files) is tested beside them.
package faults
