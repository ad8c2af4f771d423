// Package driver implements the lifecycle of the driver process: its sockets and their clean-up, the
// adapters it owns, its self-check at start, and the management interface for status and settings.
// Subpackages: config, its configuration; lock, which allows one driver per state directory.
package driver
