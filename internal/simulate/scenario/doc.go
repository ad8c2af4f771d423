// Package scenario is the file of a simulation: what the network is, how its switches and adapters are set, and what they carry.
//
// It is one JSON object, as the driver's configuration is. Switches have the names of internal/fabric/ethernet, adapters those of
// the registry. A quantity is a number in the field's own unit, or a text with another. Everything is checked here, once: an error
// names the file, the line, the field and what is allowed.
package scenario
