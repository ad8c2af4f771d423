package cm

import (
	"github.com/softvpi/softvpi/wire/ib"
)

func (e *Engine) rememberPeer(c *conn) {
	c.byPeer = true
	e.peers[c.peerKey()] = c
}

func (e *Engine) forgetPeer(c *conn) {
	if c.byPeer && e.peers[c.peerKey()] == c {
		delete(e.peers, c.peerKey())
	}
	c.byPeer = false
}

func (e *Engine) rememberQPN(c *conn) {
	c.byQPN = true
	e.qpns[c.qpnKey()] = c
}

func (e *Engine) forgetQPN(c *conn) {
	if c.byQPN && e.qpns[c.qpnKey()] == c {
		delete(e.qpns, c.qpnKey())
	}
	c.byQPN = false
}

// transaction returns a new transaction ID.
func (e *Engine) transaction() uint64 {
	e.nextTID++
	return e.nextTID
}

// psn returns a random starting PSN.
func (e *Engine) psn() ib.PSN { return ib.PSN(e.cfg.Rand()) & ib.PSNMask }
