package collector

import (
	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/healing"
)

// ofHealing are the words of self-healing.
func ofHealing() map[string]func(*device.Counters) uint64 {
	of := func(s healing.Sensor) func(*device.Counters) uint64 {
		return func(c *device.Counters) uint64 { return c.Healing.Of(s) }
	}
	return map[string]func(*device.Counters) uint64{
		"restarts":                  func(c *device.Counters) uint64 { return c.Healing.Restarts },
		"send_hardware_errors":      of(healing.SendHardware),
		"send_software_errors":      of(healing.SendSoftware),
		"receive_software_errors":   of(healing.ReceiveSoftware),
		"receive_completion_errors": of(healing.ReceiveCompletion),
		"send_completion_errors":    of(healing.SendCompletion),
		"event_queue_errors":        of(healing.EventQueue),
		"command_errors":            of(healing.Command),
		"health_errors":             of(healing.Health),
		"internal_errors":           of(healing.Internal),
	}
}
