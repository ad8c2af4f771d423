package subnet_test

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/fabric"
	"github.com/softvpi/softvpi/internal/subnet"
	"github.com/softvpi/softvpi/internal/subnet/partition"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

const redGUID, blueGUID = 0x0200000000000021, 0x0200000000000022

func vgid(guid uint64) (g ib.GID) {
	binary.BigEndian.PutUint64(g[:], subnet.DefaultPrefix)
	binary.BigEndian.PutUint64(g[8:], guid)
	return g
}

// path asks the administration from a port for the path between two GIDs.
func (w *world) path(at fabric.Place, from, to ib.GID) (rec mad.PathRecord, status uint16) {
	w.tid++
	m := mad.NewSA(mad.MethodGet, mad.AttrPathRecord, 0, w.tid)
	m.ComponentMask = mad.PathSGID | mad.PathDGID
	ask := mad.PathRecord{SGID: from, DGID: to}
	copy(m.Data[:], ask.Append(nil))
	status = 0xffff
	w.client = func(got fabric.Place, q *fabric.Packet) {
		if a, err := mad.ParseSA(q.MAD[:]); err == nil && got == at && a.TransactionID == w.tid {
			status = a.Status
			rec, _ = mad.ParsePathRecord(a.Data[:])
		}
	}
	p := subnet.Packet{LID: w.f.PortInfo(at).MasterSMLID, QPN: 1, LocalQPN: 1}
	m.Append(p.MAD[:0])
	w.carry(at, &p)
	w.run(time.Millisecond)
	return rec, status
}

// active returns the virtual ports of a place, which have to be active with LIDs that nobody else has.
func (w *world) active(at fabric.Place, want int) []fabric.VirtualState {
	w.t.Helper()
	all, enabled := w.f.Virtual(at)
	if !enabled || len(all) != want {
		w.t.Fatalf("%d virtual ports, enabled: %v; want %d", len(all), enabled, want)
	}
	taken := []ib.LID{0, w.f.PortInfo(at).LID}
	for _, v := range all {
		if v.State != mad.PortActive || slices.Contains(taken, v.LID) {
			w.t.Fatalf("virtual port %d is %v with LID %d, beside %d: %v", v.Index, v.State, v.LID, taken, w.log)
		}
		taken = append(taken, v.LID)
	}
	return all
}

// TestVirtualPorts: with virt_enable 2 virtual ports get LIDs, partitions and routes, are activated, and the administration knows them.
// They keep their LIDs when others come and go, when their port has been down, and with a manager that takes over.
func TestVirtualPorts(t *testing.T) {
	_, w := smallTree(t)
	keys, err := partition.Parse(fmt.Sprintf("Default=0x7fff: ALL=full;\nTenant=0x22: %#x=full;\n", redGUID))
	if err != nil {
		t.Fatal(err)
	}
	cfg := subnet.Config{Virtual: subnet.VirtualEnable, Partitions: keys, PollInterval: time.Second, PollRetries: 2, MKey: 7,
		MKeyProtect: 1}
	master := w.manager(0, cfg)
	at, other := fabric.Place{Node: 5, Port: 1}, fabric.Place{Node: 9, Port: 1}
	w.f.Plug(w.now, at, true)
	w.f.SetVirtual(w.now, at, []fabric.VirtualPort{{Index: 1, GUID: redGUID}, {Index: 3, GUID: blueGUID}, {Index: 3, GUID: 5},
		{Index: 99, GUID: 6}})
	w.run(time.Second)
	both := w.active(at, 2)
	red, blue := both[0], both[1]
	if red.GUID != redGUID || blue.Index != 3 || !slices.Contains(red.PKeys, 0x8022) || slices.Contains(blue.PKeys, 0x8022) {
		t.Errorf("red %+v, blue %+v; want the partition of red alone", red, blue)
	}

	for _, p := range []struct {
		from fabric.Place
		slid ib.LID
	}{{other, w.f.PortInfo(other).LID}, {at, blue.LID}, {at, w.f.PortInfo(at).LID}} {
		if ok, err := w.f.Transmit(w.now, p.from, packet(p.slid, red.LID, ib.PKeyDefault), nil, nil); !ok || err != nil {
			t.Fatalf("LID %d sends: %v, %v", p.slid, ok, err)
		}
		w.ib.Node.Wake()
		w.run(time.Millisecond)
		got := make([]*fabric.Parcel, 4)
		if n := w.f.Collect(w.now, at, got); n != 1 {
			t.Errorf("%d packets from LID %d came to red, want 1", n, p.slid)
		} else {
			w.f.Release(w.now, got[:n])
		}
	}
	rec, status := w.path(other, w.gid(9), vgid(redGUID))
	if status != 0 || rec.DLID != red.LID || rec.SLID != w.f.PortInfo(other).LID {
		t.Errorf("path to red: status %#x, %+v; want LID %d", status, rec, red.LID)
	}
	if rec, status = w.path(at, vgid(blueGUID), vgid(redGUID)); status != 0 || rec.DLID != red.LID || rec.SLID != blue.LID {
		t.Errorf("path from blue to red: status %#x, %+v", status, rec)
	}

	w.f.SetVirtual(w.now, at, []fabric.VirtualPort{{Index: 1, GUID: redGUID}})
	w.ib.Node.Wake()
	w.run(time.Second)
	if now := w.active(at, 1); now[0].LID != red.LID {
		t.Errorf("red has LID %d, it had %d", now[0].LID, red.LID)
	}
	if _, status = w.path(other, w.gid(9), vgid(blueGUID)); status == 0 {
		t.Error("there is a path to blue, which is gone")
	}
	w.f.TakeDown(w.now, at)
	w.ib.Node.Wake()
	w.run(time.Second)
	if all, _ := w.f.Virtual(at); all[0].State != mad.PortDown {
		t.Errorf("red is %v at a port that is down", all[0].State)
	}
	w.f.Plug(w.now, at, true)
	w.f.SetVirtual(w.now, at, []fabric.VirtualPort{{Index: 1, GUID: redGUID}, {Index: 2, GUID: blueGUID}})
	w.ib.Node.Wake()
	w.run(time.Second)
	before := w.active(at, 2)
	if before[0].LID != red.LID {
		t.Errorf("red has LID %d after its port was down, it had %d", before[0].LID, red.LID)
	}
	w.manager(12, cfg)
	w.run(time.Second)
	w.kill(master)
	w.run(10 * time.Second)
	after := w.active(at, 2)
	if after[0].LID != before[0].LID || after[1].LID != before[1].LID || after[0].Reregister == before[0].Reregister {
		t.Errorf("after a takeover %+v, before %+v; want the same LIDs, and clients asked to reregister", after, before)
	}
}

// TestVirtualPortsOff: with virt_enable 0 nobody touches virtual ports, with 1 those that were enabled are disabled.
func TestVirtualPortsOff(t *testing.T) {
	for _, c := range []struct {
		how     subnet.Virtualization
		enabled bool
	}{{subnet.VirtualIgnore, true}, {subnet.VirtualDisable, false}} {
		_, w := smallTree(t)
		at := fabric.Place{Node: 5, Port: 1}
		w.f.SetVirtual(w.now, at, []fabric.VirtualPort{{Index: 1, GUID: redGUID}})
		first := w.manager(0, subnet.Config{Virtual: subnet.VirtualEnable})
		w.run(time.Second)
		w.active(at, 1)
		w.kill(first)
		w.manager(12, subnet.Config{Virtual: c.how, IgnoreOthers: true})
		w.run(time.Second)
		all, enabled := w.f.Virtual(at)
		if enabled != c.enabled || enabled != (all[0].State == mad.PortActive) {
			t.Errorf("virt_enable %d: enabled is %v, and the virtual port %v", c.how, enabled, all[0].State)
		}
	}
}

// TestVirtualPortsOneAfterAnother: virtual ports that come while their port may not send its trap again get their LIDs all the same, the
// manager does not ask for ever, and many at once cost no more than one.
func TestVirtualPortsOneAfterAnother(t *testing.T) {
	_, w := smallTree(t)
	master := w.manager(0, subnet.Config{Virtual: subnet.VirtualEnable})
	at := fabric.Place{Node: 5, Port: 1}
	w.f.Plug(w.now, at, true)
	w.run(5 * time.Second)
	requests := func(what string, f func(), most uint64) {
		before, _, _ := master.sm.Traffic()
		if f(); t.Failed() {
			return
		}
		after, again, lost := master.sm.Traffic()
		t.Logf("%s: %d requests", what, after-before)
		if after-before > most || again+lost > 0 {
			t.Errorf("%s: %d requests, want at most %d; %d again, %d lost", what, after-before, most, again, lost)
		}
	}
	var list []fabric.VirtualPort
	add := func(n int) {
		for range n {
			i := len(list) + 1
			list = append(list, fabric.VirtualPort{Index: uint16(i), GUID: redGUID + uint64(i)})
		}
		w.f.SetVirtual(w.now, at, list)
		w.ib.Node.Wake()
	}
	w.active(at, 0)
	requests("one", func() { add(1); w.run(50 * time.Millisecond); w.active(at, 1) }, 300)
	for _, pause := range []time.Duration{0, 0, 70, 150, 400, 900} {
		w.run(pause * time.Millisecond)
		add(1)
		w.run(100 * time.Millisecond)
		w.active(at, len(list))
	}
	w.run(3 * time.Second)
	requests("rest", func() { w.run(time.Minute) }, 0)
	list = nil
	add(0)
	w.run(3 * time.Second)
	requests("32 at once", func() {
		for range fabric.MostVirtual {
			add(1)
		}
		w.run(200 * time.Millisecond)
		w.active(at, fabric.MostVirtual)
		w.run(3 * time.Second)
	}, 1500)
}
