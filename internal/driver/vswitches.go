package driver

import (
	"fmt"
	"slices"
	"strings"

	"github.com/softvpi/softvpi/internal/api"
	apiserver "github.com/softvpi/softvpi/internal/api/server"
	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/driver/vswitch"
)

var _ apiserver.VirtualSwitchSource = (*Driver)(nil)

// openVirtualSwitches reads which virtual switches are kept. Their functions start with their adapters.
func (d *Driver) openVirtualSwitches() {
	d.Switches = vswitch.New(vswitch.Config{
		Functions: switched{d}, Registry: d.registry, Place: d.switchPlace, PacketDirect: d.framesAt, Log: d.log, Over: d.switchOver,
		Reweigh: d.reweigh,
		Taken: func(name string) bool {
			return slices.ContainsFunc(d.switches, func(s namedSwitch) bool { return strings.EqualFold(s.name, name) })
		},
		Has: func(name string) bool {
			return slices.ContainsFunc(d.cfg.Adapters, func(a config.Adapter) bool { return a.Name == name })
		},
	})
}

// switchPlace returns the name of an adapter that a virtual switch can be over, or why there can be none.
func (d *Driver) switchPlace(adapter string) (string, error) {
	d.changes.Lock()
	defer d.changes.Unlock()
	i, err := d.find(adapter)
	if err != nil {
		return "", err
	}
	if d.infiniBand(int(i)) { // "Create an SR-IOV-enabled Virtual Switch over NVIDIA Ethernet Adapter" (WinOF-2 24.4)
		return "", fmt.Errorf("%w: virtual switches are over Ethernet adapters", api.ErrUnsupported)
	}
	return adapter, d.roomForFunction(i)
}
