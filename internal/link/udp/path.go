package udp

import "github.com/softvpi/softvpi/internal/frame"

// path is what a link keeps for a route that it has prepared.
type path struct {
	pool     *pool   // of the link
	source   *source // nil: the receiving socket sends
	socket   uint16  // number of the sending socket: 0 for the receiving one, otherwise the source's slot and one
	hop      uint16  // next hop of frames (packet.Port.Prepare), 0: none
	single   bool    // packets are sent singly
	length   uint8   // of sockaddr
	sockaddr [28]byte
}

// Release implements frame.Path.
func (w *path) Release() {
	if w.source != nil {
		w.source.release()
		w.source = nil
	}
}

// path returns the path of a route, nil if this pool's link has not prepared it.
func (p *pool) path(r *frame.Route) *path {
	if w, _ := r.Path.(*path); w != nil && w.pool == p {
		return w
	}
	return nil
}
