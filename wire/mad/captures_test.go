package mad

import (
	"bytes"
	"encoding/hex"
	"testing"

	"github.com/softvpi/softvpi/wire/captures"
	"github.com/softvpi/softvpi/wire/ib"
)

// mads calls f with every MAD of the recordings: UD packets to QP1 over IPv4 or IPv6.
func mads(t *testing.T, f func(name string, mad []byte)) {
	t.Helper()
	all, err := captures.All()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range all {
		for _, frame := range r.Frames {
			udp := 14 + 20
			if frame[12] == 0x86 {
				udp = 14 + 40
			}
			p, err := ib.ParsePacket(frame[udp+8 : len(frame)-ib.ICRCLen])
			if err != nil {
				t.Fatalf("%s: %v", r.Name, err)
			}
			if p.BTH.DestQP() == ib.QPGSI {
				f(r.Name, p.Payload)
			}
		}
	}
}

// What Linux sends is read, and written again it is the same bytes.
func TestRecordedMADsComeBack(t *testing.T) {
	seen := map[uint16]int{}
	mads(t, func(name string, b []byte) {
		m, err := DecodeCM(b)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			return
		}
		seen[m.Attribute()]++
		if got := m.Append(nil); !bytes.Equal(got, b) {
			t.Errorf("%s:\n%s comes back as\n%s", name, hex.Dump(b), hex.Dump(got))
		}
	})
	for _, attr := range []uint16{AttrREQ, AttrREJ, AttrREP, AttrRTU, AttrDREQ, AttrDREP} {
		if seen[attr] == 0 {
			t.Errorf("no message with attribute %#x is recorded", attr)
		}
	}
	t.Logf("messages by attribute: %v", seen)
}

func TestRecordedREQs(t *testing.T) {
	mads(t, func(name string, b []byte) {
		if b[17] != AttrREQ {
			return
		}
		m, err := ParseREQ(b)
		if err != nil {
			t.Fatal(err)
		}
		space, port, ok := ParseServiceID(m.ServiceID)
		if !ok || space != PortSpaceTCP || port == 0 {
			t.Errorf("%s: service ID %#x", name, m.ServiceID)
		}
		if m.PathMTU != ib.MTU1024 || m.PKey != ib.PKeyDefault || m.TransportType > TransportUC || m.FlowControl {
			t.Errorf("%s: MTU %v, P_Key %#x, transport %d, flow control %v", name, m.PathMTU, m.PKey, m.TransportType, m.FlowControl)
		}
		if m.Primary.LocalLID != 0xffff || m.Primary.RemoteLID != 0xffff || m.Primary.HopLimit == 0 {
			t.Errorf("%s: path %+v", name, m.Primary)
		}
		h, err := ParseIPHeader(m.PrivateData[:])
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if h.Source.Addr() != m.Primary.LocalGID.Addr() || h.Destination != m.Primary.RemoteGID.Addr() || !h.Source.IsValid() {
			t.Errorf("%s: header %v to %v, GIDs %v to %v", name, h.Source, h.Destination, m.Primary.LocalGID, m.Primary.RemoteGID)
		}
		if again := h.Append(nil); !bytes.Equal(again, m.PrivateData[:IPHeaderLen]) {
			t.Errorf("%s: IP header % x comes back as % x", name, m.PrivateData[:IPHeaderLen], again)
		}
	})
}

func TestRecordedRejects(t *testing.T) {
	reasons := map[RejectReason]bool{}
	mads(t, func(_ string, b []byte) {
		if m, err := ParseREJ(b); err == nil {
			reasons[m.Reason] = true
		}
	})
	for _, want := range []RejectReason{RejectTimeout, RejectInvalidServiceID} {
		if !reasons[want] {
			t.Errorf("no REJ for %q among %v", want, reasons)
		}
	}
}
