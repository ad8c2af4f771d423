package nd

import (
	"net/netip"
)

// GetReadLimits returns the limits of the connection or, before Accept, those that the peer offers.
func (c *Connector) GetReadLimits() (inbound, outbound int, err error) {
	c.state.Lock()
	defer c.state.Unlock()
	id, err := c.peerOf("Connector.GetReadLimits")
	if err != nil {
		return 0, 0, err
	}
	peer := id.Peer()
	l := c.adapter.dev.Limits()
	inbound, outbound = min(peer.ResponderResources, l.MaxReadResponder), min(peer.InitiatorDepth, l.MaxReadInitiator)
	if c.phase != phaseRequested {
		inbound, outbound = min(inbound, c.limits.inbound), min(outbound, c.limits.outbound)
	}
	return inbound, outbound, nil
}

// GetPrivateData returns the private data of the peer's request or answer. It has the size of the
// message's field, zero-padded.
func (c *Connector) GetPrivateData() ([]byte, error) {
	c.state.Lock()
	defer c.state.Unlock()
	id, err := c.peerOf("Connector.GetPrivateData")
	if err != nil {
		return nil, err
	}
	return id.Peer().Private, nil
}

// GetLocalAddress returns the connector's address. ND_CONNECTION_INVALID while
// it has none.
func (c *Connector) GetLocalAddress() (netip.AddrPort, error) {
	c.state.Lock()
	defer c.state.Unlock()
	if c.id == nil || !c.id.LocalAddr().IsValid() {
		return netip.AddrPort{}, refuse(StatusConnectionInvalid, "Connector.GetLocalAddress", "the connector has no address")
	}
	return c.id.LocalAddr(), nil
}

// GetPeerAddress returns the peer's address. ND_CONNECTION_INVALID while there
// is no peer.
func (c *Connector) GetPeerAddress() (netip.AddrPort, error) {
	c.state.Lock()
	defer c.state.Unlock()
	id, err := c.peerOf("Connector.GetPeerAddress")
	if err != nil {
		return netip.AddrPort{}, err
	}
	return id.RemoteAddr(), nil
}
