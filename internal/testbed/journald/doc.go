// Package journald runs systemd's journald for tests, in a mount namespace of its own. Linux has it alone.
package journald
