package setup

import (
	_ "embed"
	"strings"
)

//go:embed softvpi.service
var service string

// Sockets is the unit by which systemd opens the sockets of a user's driver, and starts it when somebody connects.
//
//go:embed softvpi.socket
var Sockets string

//go:embed softvpi-system.service
var systemService string

// SystemSockets is the unit by which systemd opens the sockets of the system's driver.
//
//go:embed softvpi-system.socket
var SystemSockets string

// SystemFunctionSocket is the template by which systemd opens the socket of a virtual function of the system's driver.
//
//go:embed softvpi-function.socket
var SystemFunctionSocket string

// SystemUsers is what systemd-sysusers makes the user of the system's driver of.
//
//go:embed sysusers.conf
var SystemUsers string

// placeholder is the program in the unit.
const placeholder = "@PROGRAM@"

// Unit returns the unit of systemd that runs the driver of a user, with the path of the program.
func Unit(program string) string { return strings.ReplaceAll(service, placeholder, quoted(program)) }

// SystemUnit is Unit for the driver of the system.
func SystemUnit(program string) string {
	return strings.ReplaceAll(systemService, placeholder, quoted(program))
}

// quoted writes a path as units do, in which % and spaces mean something.
func quoted(s string) string {
	s = strings.ReplaceAll(s, "%", "%%")
	if strings.ContainsAny(s, " \t\"'\\;$") {
		return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "$", "$$").Replace(s) + `"`
	}
	return s
}
