package driver

import "github.com/softvpi/softvpi/internal/transport/congestion"

// congestion returns the settings of congestion control. An adapter of the generation that has no such keys has none.
func (r *running) congestion() congestion.Settings { return congestion.FromKeys(r.value) }

// changeCongestion makes adapter i follow its keys of congestion control.
func (d *Driver) changeCongestion(i int) error {
	return d.host.SetCongestion(uint32(i), d.running[i].congestion())
}
