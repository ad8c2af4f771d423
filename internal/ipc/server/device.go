package server

import "github.com/softvpi/softvpi/internal/device"

// DeviceHost returns the adapters of h as a Host.
func DeviceHost(h *device.Host) Host { return deviceHost{h} }

type deviceHost struct{ host *device.Host }

func (d deviceHost) NewClient(cfg device.ClientConfig) (Session, error) {
	c, err := d.host.NewClient(cfg)
	if err != nil {
		return nil, err
	}
	return c, nil
}

func (deviceHost) Doorbells() int { return device.Doorbells().Entries }

func (d deviceHost) Zero() uint64 { return d.host.Zero() }
