package device

import "github.com/softvpi/softvpi/internal/direct"

// Neighbour is the side of an attached program that takes part in the direct path:
// what the loop needs of the connection with it. The methods are called with the
// baton: they must not block, nor call into the Host. Peers are of the same kind.
type Neighbour interface {
	// Keys is the memory of the program's key table, direct.TableSize bytes.
	Keys() []byte
	// Share makes zeroed memory of size bytes, aligned to 64, that this program and
	// peer both map.
	Share(peer Neighbour, size int) (Place, []byte, error)
	// Unshare gives that memory back.
	Unshare(peer Neighbour, at Place)
	// Introduce tells the program of a pair, after everything of peer that it needs
	// to work on it.
	Introduce(peer Neighbour, i Introduction)
	// End disconnects the program.
	End(cause error)
}

// Place is where shared memory lies: in an area of the two programs.
type Place struct {
	Area   uint32
	_      uint32
	Offset uint64
}

// Introduction tells a program of the direct path of a QP.
type Introduction struct {
	QP     uint32 // handle
	Number uint32
	Role   uint32 // the direction that the program initiates
	Owner  uint32 // by which it claims slots of completion queues
	Record Place
	Now    uint64 // on the clock of completions
}

// keys enters the regions of a client into its key table.
func (c *Client) export(m *mr) {
	if !c.direct {
		return
	}
	r := m.region
	k := direct.Key{
		Key: r.Key, Adapter: m.pd.adapter.index, PD: uint32(r.PD), Access: uint32(r.Access),
		Start: r.Start(), Length: r.Length, Address: r.Base, Segment: m.segment, Offset: m.offset,
	}
	m.exported = c.keys.Add(k)
}

// withdraw takes a region out of the key table. Programs may be using it still.
func (m *mr) withdraw(c *Client) {
	if m.exported {
		c.keys.Remove(m.pd.adapter.index, m.region.Key)
		m.exported = false
	}
}
