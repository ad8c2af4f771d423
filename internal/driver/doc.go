// Package driver is the lifecycle of the driver process: its configuration, its
// lock, sockets and clean-up, the adapters it owns, the check it makes of itself
// when it starts, and the management interface that status and settings use.
package driver
