// Package driver is the lifecycle of the driver process: its sockets and clean-up, the adapters it owns, the check it makes
// of itself when it starts, and the management interface that status and settings use. Below it: config, what it is
// configured with; lock, which keeps a state directory to one driver.
package driver
