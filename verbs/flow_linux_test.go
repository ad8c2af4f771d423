package verbs_test

import (
	"bytes"
	"net"
	"net/netip"
	"path/filepath"
	"testing"

	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/link/datagram"
	"github.com/softvpi/softvpi/internal/testbed"
	"github.com/softvpi/softvpi/verbs"
)

// TestRawPackets: an attached program sends a whole Ethernet frame from a raw packet QP and receives it in another, by a flow for
// its MAC; frames are its own bytes, and a QP with a flow cannot be closed.
func TestRawPackets(t *testing.T) {
	d, mac := frameDevice(t)
	pd := must(d.AllocPD())(t)
	cq := must(d.CreateCQ(16))(t)
	mr := must(pd.Allocate(8192, everything))(t)
	var qps [2]*verbs.QP
	for i := range qps {
		qps[i] = must(pd.CreateQP(verbs.QPConfig{Type: verbs.RawPacket, SendCQ: cq, RecvCQ: cq, SendDepth: 4, RecvDepth: 4}))(t)
		for _, s := range []verbs.QPState{verbs.StateInit, verbs.StateRTR, verbs.StateRTS} {
			ok(t, qps[i].Modify(verbs.QPAttr{State: s}, verbs.MaskState))
		}
	}
	rule := verbs.FlowConfig{Layers: verbs.FlowEthernet}
	rule.Value.Dst, rule.Mask.Dst = mac, [6]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	flow := must(qps[1].CreateFlow(rule))(t)
	rule.Layers = 0
	_, err := qps[1].CreateFlow(rule)
	wantErr(t, err, verbs.ErrInvalid)
	ok(t, qps[1].PostRecv(&verbs.RecvWR{ID: 7, SGE: []verbs.SGE{mr.SGE(4096, 2048)}}))
	frame := mr.Bytes()[:100]
	copy(frame, "\x02\x00\x00\x00\x08\x01\x02\x00\x00\x00\x08\x02\x88\xb5the frame")
	ok(t, qps[0].PostSend(&verbs.SendWR{ID: 8, Op: verbs.OpSend, Flags: verbs.Signaled, SGE: []verbs.SGE{mr.SGE(0, 100)}}))
	seen := map[uint64]verbs.WC{}
	for range 2 {
		wc := nextOf(t, cq)
		seen[wc.ID] = wc
	}
	if seen[8].Status != verbs.Success || seen[7].Status != verbs.Success || seen[7].ByteLen != 100 ||
		!bytes.Equal(mr.Bytes()[4096:4196], frame) {
		t.Errorf("completions %+v", seen)
	}
	wantErr(t, qps[1].Close(), verbs.ErrBusy)
	ok(t, flow.Close())
	ok(t, qps[1].Close())
}

// frameDevice returns a device of a driver whose wire carries whole frames, with its MAC.
func frameDevice(t *testing.T) (*verbs.Device, [6]byte) {
	t.Helper()
	mac, addr := [6]byte{2, 0, 0, 0, 8, 1}, netip.MustParseAddr("10.80.0.1")
	station := link.Station{MAC: mac, Prefixes: []netip.Prefix{netip.PrefixFrom(addr, 24)}}
	wire := filepath.Join(t.TempDir(), "w")
	far := must(net.ListenUnixgram("unixgram", &net.UnixAddr{Name: wire + ".peer", Net: "unixgram"}))(t) // it makes the port active
	t.Cleanup(func() { far.Close() })
	l := must(datagram.Open(datagram.Config{Local: wire, Remote: wire + ".peer", MTU: 1500, Stations: []link.Station{station}}))(t)
	socket := testbed.DriverOf(t, device.AdapterConfig{Addr: addr, MAC: mac, Link: l})
	h := must(verbs.Open(testbed.Context(t), verbs.Options{Mode: verbs.Attached, Socket: socket}))(t)
	t.Cleanup(func() { h.Close() })
	return must(h.DeviceByAddr(addr))(t), mac
}

// TestRawPackets_LargeSend: a large packet of TCP leaves as frames, and an RSS gives those of one flow to one QP of its table.
func TestRawPackets_LargeSend(t *testing.T) {
	d, mac := frameDevice(t)
	pd := must(d.AllocPD())(t)
	cq := must(d.CreateCQ(64))(t)
	mr := must(pd.Allocate(1<<16, everything))(t)
	qp := func(headers int) *verbs.QP {
		c := verbs.QPConfig{Type: verbs.RawPacket, SendCQ: cq, RecvCQ: cq, SendDepth: 4, RecvDepth: 16, Headers: headers}
		q := must(pd.CreateQP(c))(t)
		for _, s := range []verbs.QPState{verbs.StateInit, verbs.StateRTR, verbs.StateRTS} {
			ok(t, q.Modify(verbs.QPAttr{State: s}, verbs.MaskState))
		}
		return q
	}
	tx, plain, rx := qp(54), qp(0), []*verbs.QP{qp(0), qp(0)}
	rss := must(d.CreateRSS(verbs.RSSConfig{Table: []*verbs.QP{rx[0], rx[1], rx[0], rx[1]}, Fields: verbs.RSSSrcIPv4 | verbs.RSSDstTCP,
		Key: [40]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}}))(t)
	rule := verbs.FlowConfig{Layers: verbs.FlowEthernet}
	rule.Value.Dst, rule.Mask.Dst = mac, [6]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	flow := must(rss.CreateFlow(rule))(t)
	for _, q := range rx {
		for i := range 4 {
			ok(t, q.PostRecv(&verbs.RecvWR{ID: uint64(i), SGE: []verbs.SGE{mr.SGE(1<<15+2048*i, 2048)}}))
		}
	}
	head := append(append(mac[:], 2, 0, 0, 0, 8, 2, 8, 0), 0x45, 0, 0, 0, 0, 1, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2)
	head = append(head, 0, 7, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0x50, 0x18, 1, 0, 0, 0, 0, 0)
	wr := verbs.SendWR{ID: 8, Op: verbs.OpLargeSend, Flags: verbs.Signaled, Headers: head, Segment: 1000, SGE: []verbs.SGE{mr.SGE(0, 3500)}}
	copy(mr.Bytes(), bytes.Repeat([]byte("data "), 700))
	wantErr(t, plain.PostSend(&wr), verbs.ErrInvalid)
	ok(t, tx.PostSend(&wr))
	var got []byte
	var by uint32
	for range 5 {
		wc := nextOf(t, cq)
		switch {
		case wc.Status != verbs.Success:
			t.Fatalf("completion %+v", wc)
		case wc.Op == verbs.CompletedLargeSend:
			continue
		case by != 0 && wc.QPN != by || wc.Flags&verbs.GoodChecksums == 0:
			t.Errorf("completion %+v, after one of %d", wc, by)
		}
		by = wc.QPN
		got = append(got, mr.Bytes()[1<<15+2048*wc.ID:][54:wc.ByteLen]...)
	}
	if !bytes.Equal(got, mr.Bytes()[:3500]) {
		t.Errorf("%d bytes arrive, and not those that were sent", len(got))
	}
	wr.Segment = 0
	wantErr(t, tx.PostSend(&wr), verbs.ErrInvalid)
	wantErr(t, rss.Close(), verbs.ErrBusy)
	ok(t, flow.Close())
	wantErr(t, rx[1].Close(), verbs.ErrBusy)
	ok(t, rss.Close())
	ok(t, rx[1].Close())
	for _, table := range [][]*verbs.QP{nil, {rx[0], rx[0], rx[0]}, make([]*verbs.QP, 1), make([]*verbs.QP, 256)} {
		_, err := d.CreateRSS(verbs.RSSConfig{Table: table})
		wantErr(t, err, verbs.ErrInvalid)
	}
	_, err := d.CreateRSS(verbs.RSSConfig{Table: rx[:1], Fields: verbs.RSSSrcIPv4 | verbs.RSSSrcIPv6})
	wantErr(t, err, verbs.ErrUnsupported)
	_, err = pd.CreateQP(verbs.QPConfig{Type: verbs.RawPacket, SendCQ: cq, RecvCQ: cq, Headers: 129})
	wantErr(t, err, verbs.ErrInvalid)
}

// TestRawPackets_FrameOptions: an attached program has tags taken off and check sequences put behind what it receives, until it says
// otherwise; other QPs have no such options.
func TestRawPackets_FrameOptions(t *testing.T) {
	d, mac := frameDevice(t)
	pd := must(d.AllocPD())(t)
	cq := must(d.CreateCQ(16))(t)
	mr := must(pd.Allocate(8192, everything))(t)
	const all = verbs.StripVLAN | verbs.ScatterFCS
	cfg := verbs.QPConfig{Type: verbs.RawPacket, SendCQ: cq, RecvCQ: cq, SendDepth: 4, RecvDepth: 4, Frames: all | verbs.DelayDrop}
	q := must(pd.CreateQP(cfg))(t)
	for _, s := range []verbs.QPState{verbs.StateInit, verbs.StateRTR, verbs.StateRTS} {
		ok(t, q.Modify(verbs.QPAttr{State: s}, verbs.MaskState))
	}
	rule := verbs.FlowConfig{Layers: verbs.FlowEthernet}
	rule.Value.Dst, rule.Mask.Dst = mac, [6]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	must(q.CreateFlow(rule))(t)
	copy(mr.Bytes(), "\x02\x00\x00\x00\x08\x01\x02\x00\x00\x00\x08\x02\x81\x00\x30\x07\x88\xb5the frame")
	for _, c := range []struct {
		options verbs.FrameOptions
		size    uint32
		vlan    uint16
	}{{all, 100, 0x3007}, {0, 100, 0}, {verbs.StripVLAN, 96, 0x3007}, {verbs.ScatterFCS, 104, 0}} {
		ok(t, q.SetFrameOptions(c.options, all))
		ok(t, q.PostSend(&verbs.SendWR{ID: 8, Op: verbs.OpSend, Flags: verbs.Signaled, SGE: []verbs.SGE{mr.SGE(0, 100)}}))
		ok(t, q.PostRecv(&verbs.RecvWR{ID: 7, SGE: []verbs.SGE{mr.SGE(4096, 2048)}})) // the frame may wait for it
		for range 2 {
			wc := nextOf(t, cq)
			if ok(t, wc.Status.Err()); wc.ID == 7 && (wc.ByteLen != c.size || wc.VLAN() != c.vlan) || wc.ID == 8 && wc.VLAN() != 0 {
				t.Errorf("options %#x: %+v", c.options, wc)
			}
		}
	}
	wantErr(t, q.SetFrameOptions(1, all), verbs.ErrInvalid)
	for _, c := range []verbs.QPConfig{{Type: verbs.UD, Frames: all}, {Type: verbs.RawPacket, Frames: 1}} {
		c.SendCQ, c.RecvCQ = cq, cq
		_, err := pd.CreateQP(c)
		wantErr(t, err, verbs.ErrInvalid)
	}
}
