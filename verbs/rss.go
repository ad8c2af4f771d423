package verbs

import "github.com/softvpi/softvpi/internal/command"

// RSSFields are the fields of a frame that its hash is made over.
type RSSFields = command.RSSFields

// The fields. Those of IPv4 and IPv6, and those of TCP and UDP, do not go together without RSSPresent.
const (
	RSSSrcIPv4 = command.RSSSrcIPv4
	RSSDstIPv4 = command.RSSDstIPv4
	RSSSrcIPv6 = command.RSSSrcIPv6
	RSSDstIPv6 = command.RSSDstIPv6
	RSSSrcTCP  = command.RSSSrcTCP
	RSSDstTCP  = command.RSSDstTCP
	RSSSrcUDP  = command.RSSSrcUDP
	RSSDstUDP  = command.RSSDstUDP
	// RSSPresent: the hash is over those of the fields that a frame has, and all of them go together.
	RSSPresent = command.RSSPresent
)

// MostRSSEntries is how many entries a table has at most.
const MostRSSEntries = command.MostRSSEntries

// RSSConfig says how frames are spread.
type RSSConfig struct {
	// Table are raw packet QPs of the device, a power of two of them, up to MostRSSEntries; the same one may be there more than once.
	Table []*QP
	// Fields are what the hash is over, in the order source address, destination address, source port, destination port. Frames
	// without them are for the first entry.
	Fields RSSFields
	// Key is that of the Toeplitz hash.
	Key [command.RSSKeyLen]byte
}

// RSS spreads the frames of its flows over QPs (receive-side scaling): the lowest bits of a frame's hash choose an entry of its table.
type RSS struct {
	host   *Host
	handle command.Handle
}

// CreateRSS makes an RSS. Its QPs cannot be closed before it. Errors are ErrInvalid, ErrExhausted, and ErrUnsupported for fields
// that do not go together, or with a driver that has none (FrameRSS).
func (d *Device) CreateRSS(c RSSConfig) (*RSS, error) {
	r := command.CreateRSS{Entries: uint32(len(c.Table)), Fields: c.Fields, Key: c.Key}
	if err := fillTable("create rss", d.host, &r.Table, c.Table); err != nil {
		return nil, err
	}
	handle, err := d.host.backend.CreateRSS(d.host.ctx, r)
	if err != nil {
		return nil, wrap("create rss", err)
	}
	return &RSS{host: d.host, handle: handle}, nil
}

// fillTable writes the handles of a table's QPs.
func fillTable(op string, h *Host, to *[command.MostRSSEntries]command.Handle, table []*QP) error {
	if len(table) > MostRSSEntries {
		return newError(op, ErrInvalid, "Table has %d entries, want a power of two up to %d", len(table), MostRSSEntries)
	}
	for i, q := range table {
		if q == nil || q.pd.dev.host != h {
			return newError(op, ErrInvalid, "Table[%d] is not a QP of this device", i)
		}
		to[i] = q.handle
	}
	return nil
}

// SetTable gives it another table, for frames that are received from now on. Errors are those of CreateRSS.
func (r *RSS) SetTable(table []*QP) error {
	s := command.SetRSS{RSS: r.handle, Entries: uint32(len(table))}
	if err := fillTable("set rss table", r.host, &s.Table, table); err != nil {
		return err
	}
	return wrap("set rss table", r.host.backend.SetRSS(r.host.ctx, s))
}

// CreateFlow is QP.CreateFlow for the QPs of the table.
func (r *RSS) CreateFlow(c FlowConfig) (*Flow, error) { return r.host.createFlow(r.handle, c) }

// Close ends it. It cannot be closed before its flows.
func (r *RSS) Close() error {
	return r.host.destroyed("destroy rss", r.host.backend.Destroy(r.host.ctx, command.KindRSS, r.handle))
}
