package device

import (
	"context"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// Port implements command.Commands.
func (c *Client) Port(ctx context.Context, index uint32) (command.PortInfo, error) {
	if err := c.enter(ctx); err != nil {
		return command.PortInfo{}, err
	}
	defer c.host.unlock()
	a, err := c.host.adapter(index)
	if err != nil {
		return command.PortInfo{}, err
	}
	return a.portInfo(), nil
}

func (a *adapter) portInfo() command.PortInfo {
	i := command.PortInfo{State: uint8(mad.PortDown), Physical: uint8(mad.PhysicalDisabled), NodeGUID: a.guid, MaxMTU: uint16(ib.MTU4096.Bytes())}
	if a.up() {
		i.State, i.Physical = uint8(mad.PortActive), uint8(mad.PhysicalLinkUp)
	}
	if a.ib != nil {
		p := a.ib.Settings()
		i.LMC, i.SMSL, i.LID, i.SMLID, i.Width, i.SubnetTimeout = p.LMC, p.SMSL, uint16(p.LID), uint16(p.SMLID), p.Width, p.SubnetTimeout
		i.Lane, i.Capabilities, i.Prefix, i.NodeGUID = uint32(p.Speed.LaneMbps()), p.Capabilities, p.Prefix, p.NodeGUID
		if p.MaxMTU.Valid() {
			i.MaxMTU = uint16(p.MaxMTU.Bytes())
		}
		if a.enabled {
			i.State, i.Physical = uint8(p.State), uint8(p.Physical)
		}
	}
	for n, k := range a.engine.PKeys() {
		if n == len(i.PKeys) {
			break
		}
		i.PKeys[n], i.PKeyCount = uint16(k), uint32(n+1)
	}
	return i
}
