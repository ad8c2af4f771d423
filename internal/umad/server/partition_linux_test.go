package server

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/fabric"
	"github.com/softvpi/softvpi/internal/subnet"
	"github.com/softvpi/softvpi/internal/subnet/service"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/umad"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// manage runs a subnet manager in the fabric until the test ends.
func (w *world) manage() {
	w.Helper()
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	up := make(chan struct{})
	var once sync.Once
	go func() {
		done <- w.rack.Manage(ctx, fabric.Place{Node: 0, Port: 1}, service.Config{Tell: func(e subnet.Event) error {
			if e.Kind == subnet.EventUp {
				once.Do(func() { close(up) })
			}
			return nil
		}})
	}()
	w.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			w.Error(err)
		}
	})
	<-up
}

// setPKeys sets the partition table of a port.
func (w *world) setPKeys(p *umad.Port, lid ib.LID, keys ...ib.PKey) {
	w.Helper()
	var table mad.PKeyTable
	copy(table[:], keys)
	m := mad.NewSMP(mad.MethodSet, mad.AttrPKeyTable, 0, 0)
	table.Append(m.Data[:0])
	d, err := p.Call(context.Background(), umad.Address{LID: lid}, (*[mad.Len]byte)(m.Append(nil)), umad.DefaultTiming)
	if err != nil || d.MAD[3] != mad.MethodGetResp {
		w.Fatal(err)
	}
}

const vendorClass = 0x33

// vendor returns a request of a class that programs may serve.
func vendor() (b [mad.Len]byte) {
	b[0], b[1], b[2], b[3] = mad.BaseVersion, vendorClass, 1, mad.MethodGet
	b[37], b[38], b[39] = 0, 0x14, 0x05
	return b
}

// TestPartitions: a datagram has the service level and, by the index in the sender's table, the P_Key that its sender
// chose. The receiver gets the index in the table of its own port and answers likewise. A datagram with a P_Key that
// the port does not have is dropped and counted.
func TestPartitions(t *testing.T) {
	w := serve(t)
	w.manage()
	a, b := w.open(umad.ServiceOptions{Node: "hca2"}), w.open(umad.ServiceOptions{Node: "hca3"})
	from, to := a.Device().Port.LID, b.Device().Port.LID
	w.setPKeys(a, from, 0xffff, 0x8001, 0x0002, 0x8003)
	w.setPKeys(a, to, 0x7fff, 0, 0x0002, 0x0001)
	var mu sync.Mutex
	var got umad.Address
	if err := b.Serve(vendorClass, func(d *umad.Datagram) *[mad.Len]byte {
		mu.Lock()
		defer mu.Unlock()
		got = d.Remote
		d.MAD[3] |= 0x80
		return &d.MAD
	}); err != nil {
		t.Fatal(err)
	}
	violations := func() (n uint16) {
		w.rack.Do(func(_ clock.Time, f *fabric.Fabric) { n = f.PortInfo(w.portOf(f, "hca3")).PKeyViolations })
		return n
	}
	for _, c := range []struct {
		name      string
		index, at uint16
		ok        bool
	}{
		{"the default partition", 0, 0, true}, {"another, where the receiver is a limited member", 1, 3, true},
		{"limited members of both ends", 2, 0, false}, {"one that the receiver is not in", 3, 0, false},
		{"no P_Key at the index", 9, 0, false},
	} {
		before := violations()
		request := vendor()
		limit := await.Limit // nothing is lost on the way to the receiver, however late the answer is
		if !c.ok {
			limit = 300 * time.Millisecond
		}
		d, err := a.Call(context.Background(), umad.Address{LID: to, QP: umad.GSIQP, SL: 5, PKeyIndex: c.index}, &request,
			umad.Timing{Timeout: limit, Tries: 1})
		if !c.ok {
			want := before + 1
			if c.index == 9 {
				want = before // it was not sent
			}
			// The request may travel after its sender has given up.
			counted := await.Until(func() bool { return violations() >= want })
			if n := violations(); !errors.Is(err, umad.ErrTimeout) || !counted || n != want {
				t.Errorf("%s: %v, %d violations after %d", c.name, err, n, before)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		mu.Lock()
		if want := (umad.Address{LID: from, QP: umad.GSIQP, SL: 5, PKeyIndex: c.at}); got != want {
			t.Errorf("%s: came from %+v, want %+v", c.name, got, want)
		}
		mu.Unlock()
		if want := (umad.Address{LID: to, QP: umad.GSIQP, SL: 5, PKeyIndex: c.index}); d.Remote != want {
			t.Errorf("%s: answered from %+v, want %+v", c.name, d.Remote, want)
		}
	}
}

// portOf returns the place of a node's first port.
func (w *world) portOf(f *fabric.Fabric, node string) fabric.Place {
	w.Helper()
	n, err := f.Find(node)
	if err != nil {
		w.Fatal(err)
	}
	return fabric.Place{Node: n, Port: 1}
}
