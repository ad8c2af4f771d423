package ibport

import (
	"errors"
	"log/slog"
	"slices"
	"testing"

	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// vcable is a cable whose port can have virtual ports.
type vcable struct{ cable }

func (*vcable) SetVirtual([]link.VirtualPort) {}

// TestVirtualPort: the view of a virtual function with a virtual port of its own has the LID, GUID, state and partitions of that, once
// the subnet manager has enabled and activated it, and says before why it is down.
func TestVirtualPort(t *testing.T) {
	c := &vcable{cable{changes: 1, port: link.Port{State: mad.PortActive, LID: 4, LMC: 1, SMLID: 1, Prefix: 0xfe80 << 48,
		GUIDs: []uint64{guid}, PKeys: []ib.PKey{0xffff}, Capabilities: mad.CapIsSM}}}
	p, err := New(Config{Link: c, Share: &Share{Virtual: 2, Aliases: [VirtualGIDs]uint64{7}, Used: 1, AllKeys: true},
		Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	p.Take()
	looks := func(what string, state mad.PortState, lid ib.LID, keys []ib.PKey, why error) {
		t.Helper()
		s := p.Settings()
		_, cause := p.Aliases()
		if s.State != state || s.LID != lid || s.LMC != 0 || s.GUIDs[0] != 7 || s.Capabilities != 0 || !errors.Is(cause, why) ||
			!slices.Equal(p.Keys(), keys) {
			t.Errorf("%s: %+v with keys %x, because %v; want %v, LID %d, keys %x, because %v", what, s, p.Keys(), cause, state, lid, keys, why)
		}
	}
	main := []ib.PKey{ib.PKeyDefault}
	looks("not enabled", mad.PortInit, 0, main, errNotVirtual)
	c.set(p, 0, func(s *link.Port) { s.Virtualized = true })
	looks("enabled without it", mad.PortInit, 0, main, ErrNotActive)
	virtual := func(state mad.PortState, asked uint64) func(*link.Port) {
		return func(s *link.Port) {
			s.Virtual = []link.VirtualPort{{Index: 1, GUID: 7, LID: 8, State: mad.PortActive}, {Index: 2, GUID: 7, LID: 9, State: state,
				PKeys: []ib.PKey{0x8003, 0, 0x7fff, 0, 0}, Reregister: asked}}
		}
	}
	c.set(p, 0, virtual(mad.PortArmed, 0))
	looks("armed", mad.PortInit, 9, []ib.PKey{0x8003, 0, 0x7fff}, ErrNotActive)
	if is := c.set(p, 0, virtual(mad.PortActive, 1)); !is.Reregister {
		t.Error("clients are not asked to reregister")
	}
	looks("active", mad.PortActive, 9, []ib.PKey{0x8003, 0, 0x7fff}, nil)
	if p.Has(4) || !p.Has(9) || p.Management() != 0x7fff {
		t.Errorf("it has LID 4: %v, 9: %v, and asks with %#x", p.Has(4), p.Has(9), p.Management())
	}
	p.SetShare(Share{Virtual: 2, Aliases: [VirtualGIDs]uint64{7}, Used: 1, Down: true})
	p.Take()
	looks("switched down", mad.PortDown, 9, []ib.PKey{0x7fff}, nil)
}
