package device

import (
	"testing"

	"github.com/softvpi/softvpi/internal/command"
)

// TestCMIDs_DrawnAgain: the CM may end a request's id before its program has seen it, and draw its number again for another. Ending
// the first then leaves the other alone, and both are counted.
func TestCMIDs_DrawnAgain(t *testing.T) {
	p := newChannelProgram(t)
	a := p.host.adapters[p.adapter]
	bound := func() (command.Handle, *cmid) {
		h, err := p.c.CMCreate(bg, command.CMCreate{Adapter: p.adapter, Space: command.TCP})
		if err == nil {
			_, err = p.c.CMBind(bg, h, command.Endpoint{Addr: command.AddrFrom(p.addr)})
		}
		if err != nil {
			t.Fatal(err)
		}
		return h, p.c.cms.Get(h)
	}
	first, ended := bound()
	other, o := bound()
	before := a.objects.CM
	p.host.lock()
	_ = a.cm.Destroy(a.host.now(), ended.id)
	delete(a.ids, ended.id)
	ended.id = o.id // as if the number had been drawn again
	p.host.unlock()
	if err := p.c.Destroy(bg, command.KindCM, first); err != nil {
		t.Fatal(err)
	}
	if a.ids[o.id] != o || a.objects.CM != before-1 {
		t.Fatalf("the other's id leads to %p, want %p; %d ids are left of %d", a.ids[o.id], o, a.objects.CM, before)
	}
	if err := p.c.CMListen(bg, other, 1); err != nil {
		t.Errorf("the other's id is gone: %v", err)
	}
	if err := p.c.Destroy(bg, command.KindCM, other); err != nil || a.objects.CM != before-2 || len(a.ids) != 0 {
		t.Errorf("%v, %d ids counted, %d kept", err, a.objects.CM, len(a.ids))
	}
}
