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
	mac, addr := [6]byte{2, 0, 0, 0, 8, 1}, netip.MustParseAddr("10.80.0.1")
	station := link.Station{MAC: mac, Prefixes: []netip.Prefix{netip.PrefixFrom(addr, 24)}}
	wire := filepath.Join(t.TempDir(), "w")
	far := must(net.ListenUnixgram("unixgram", &net.UnixAddr{Name: wire + ".peer", Net: "unixgram"}))(t) // it makes the port active
	defer far.Close()
	l := must(datagram.Open(datagram.Config{Local: wire, Remote: wire + ".peer", MTU: 1500, Stations: []link.Station{station}}))(t)
	socket := testbed.DriverOf(t, device.AdapterConfig{Addr: addr, MAC: mac, Link: l})
	h := must(verbs.Open(testbed.Context(t), verbs.Options{Mode: verbs.Attached, Socket: socket}))(t)
	defer h.Close()
	d := must(h.DeviceByAddr(addr))(t)
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
