// Package cmdlets is the commands of PowerShell's modules that the manuals' scripts use (NetQos, DcbQos, NetAdapter, NetTCPIP and
// others), over the management interface of a driver. One table declares each with its parameters; parsing, help, documents and the
// module for a real PowerShell are made of it.
//
// Names of commands, parameters and properties are those of Microsoft's documentation of these modules.
package cmdlets
