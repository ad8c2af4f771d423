package driver

import (
	"errors"
	"net/netip"
	"testing"

	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/driver/teams"
	"github.com/softvpi/softvpi/internal/link/station"
)

// TestPutOnWire_Failed: an adapter whose wire does not open has none that could be closed, and the error is that of the wire.
func TestPutOnWire_Failed(t *testing.T) {
	d := &Driver{Roster: &teams.Roster{}, cfg: config.Config{Fabric: &config.Fabric{Connect: "a-fabric"}, Adapters: []config.Adapter{
		{Name: "a", Link: config.LinkFabric, Address: netip.MustParseAddr("192.0.2.1"), Wire: config.Wire{Prefix: 24, LinkMTU: 1}}}}}
	var cfg device.AdapterConfig
	var field *station.FieldError
	if err := d.putOnWire(0, &cfg); !errors.As(err, &field) || cfg.Link != nil {
		t.Errorf("%v, link %v", err, cfg.Link)
	}
	closeParts(&cfg)
}
