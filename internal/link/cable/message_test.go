package cable

import (
	"reflect"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/pause"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// TestMessages: every message decodes to what was encoded, and a refusal to an error with its reason.
func TestMessages(t *testing.T) {
	h := Hello{Node: "hca-1", Port: 2, VCRC: true, Program: "softvpi"}
	if got, err := ParseHello(h.Append(nil)); err != nil || got != h {
		t.Errorf("hello: %+v (%v), want %+v", got, err, h)
	}
	h = Hello{Node: "h", Ethernet: true, Incidents: true, Program: "softvpi"}
	if got, err := ParseHello(h.Append(nil)); err != nil || got != h {
		t.Errorf("hello: %+v (%v), want %+v", got, err, h)
	}
	w := Welcome{Fabric: [16]byte{1, 2, 15: 3}, Node: "hca-1", Port: 2}
	if got, err := parseWelcome(w.Append(nil)); err != nil || got != w {
		t.Errorf("welcome: %+v (%v), want %+v", got, err, w)
	}
	p := link.Port{State: mad.PortActive, Physical: mad.PhysicalLinkUp, LID: 7, LMC: 2, SMLID: 1, SMSL: 3, Prefix: 0xfe80 << 48,
		NodeGUID: 5,
		GUIDs:    make([]uint64, link.GUIDRows),
		PKeys:    make([]ib.PKey, 64), SLtoVL: [16]uint8{1, 2, 3}, MTU: ib.MTU2048, MaxMTU: ib.MTU4096,
		Width: mad.Width4x,
		Speed: mad.SpeedNDR, Capabilities: 0xabc, SubnetTimeout: 18, Reregister: 9}
	p.GUIDs[link.GUIDRows-1], p.PKeys[63] = 77, 0x8001
	if got, err := parsePort(PortMessage(&p)); err != nil || !reflect.DeepEqual(got, p) {
		t.Errorf("port: %+v (%v), want %+v", got, err, p)
	}
	for i := range 3 {
		keys := make([]ib.PKey, link.VirtualKeys)
		keys[i] = 0x8001
		p.Virtual = append(p.Virtual, link.VirtualPort{Index: uint16(i + 1), GUID: uint64(i + 5), State: mad.PortArmed, LID: 9, PKeys: keys,
			Reregister: 4})
	}
	p.Virtualized = true
	if got, err := parsePort(PortMessage(&p)); err != nil || !reflect.DeepEqual(got, p) {
		t.Errorf("port with virtual ones: %+v (%v), want %+v", got, err, p)
	}
	if _, err := parsePort(PortMessage(&p)[:len(PortMessage(&p))-1]); err == nil {
		t.Error("a virtual port that is cut short is no error")
	}
	wanted := []link.VirtualPort{{Index: 1, GUID: 5}, {Index: 32, GUID: 1 << 63}}
	if got, ok, err := ParseVirtual(virtualMessage(wanted)); err != nil || !ok || !reflect.DeepEqual(got, wanted) {
		t.Errorf("virtual ports: %+v, %v (%v), want %+v", got, ok, err, wanted)
	}
	if got, ok, err := ParseVirtual(virtualMessage(nil)); err != nil || !ok || got != nil {
		t.Errorf("no virtual ports: %+v, %v (%v)", got, ok, err)
	}
	if got := virtualMessage(make([]link.VirtualPort, 40)); len(got) != 1+32*10 {
		t.Errorf("40 virtual ports are %d bytes, want those of 32", len(got))
	}
	if _, _, err := ParseVirtual(make([]byte, 1+33*10)); err != nil {
		t.Errorf("another message: %v", err)
	}
	if _, _, err := ParseVirtual(append([]byte{kindVirtual}, make([]byte, 33*10)...)); err == nil {
		t.Error("33 virtual ports are no error")
	}
	v := link.Violation{Kind: link.QKeyViolation, Key: 1, SLID: 2, DLID: 3, SL: 4, SourceQP: 5, DestQP: 6, SGID: ib.GID{7}, DGID: ib.GID{8}}
	if obeys, asks, err := ParsePauses(pausesMessage(pause.Only(1<<3), pause.Whole)); err != nil || obeys != pause.Only(1<<3) ||
		asks != pause.Whole {
		t.Errorf("pauses: %v, %v, %v", obeys, asks, err)
	}
	if _, _, err := ParsePauses([]byte{kindPauses, 3, 0, 0, 0}); err == nil {
		t.Error("pauses of an unknown kind are no error")
	}
	if got, err := ParseViolation(violationMessage(&v)); err != nil || got != v {
		t.Errorf("violation: %+v (%v), want %+v", got, err, v)
	}
	x := Incident{Number: 1 << 40, Over: true, Kind: "storm", Text: "s[1] priority 3 goes on"}
	if got, err := parseIncident(x.Message()); err != nil || got != x {
		t.Errorf("incident: %+v (%v), want %+v", got, err, x)
	}
	x.Text = strings.Repeat("s[1] priority 3, ", 100)
	if got, err := parseIncident(x.Message()); err != nil || len(x.Message())+4+headerLen > minDatagram ||
		!strings.HasPrefix(x.Text, strings.TrimSuffix(got.Text, "...")) || !strings.HasSuffix(got.Text, "...") {
		t.Errorf("incident: %+v (%v), want the beginning of %+v", got, err, x)
	}
	if _, err := parseWelcome(Refuse(strings.Repeat("x", 5000))); err == nil || !strings.HasPrefix(err.Error(), "the fabric refuses: xxx") {
		t.Errorf("a refusal: error %v, want one that begins with the reason", err)
	}
}

// FuzzMessages: no input makes a parser panic, and a port that is accepted has a valid MTU and LMC.
func FuzzMessages(f *testing.F) {
	h, w := Hello{Node: "a"}, Welcome{Node: "b"}
	f.Add(h.Append(nil))
	f.Add(w.Append(nil))
	f.Add(PortMessage(&link.Port{MTU: 1, MaxMTU: 5}))
	f.Add(violationMessage(&link.Violation{}))
	f.Add(PortMessage(&link.Port{MTU: 1, MaxMTU: 5, Virtual: []link.VirtualPort{{Index: 1}}}))
	f.Add(virtualMessage([]link.VirtualPort{{Index: 1, GUID: 2}}))
	f.Add(pausesMessage(pause.Whole, pause.Only(1<<3)))
	f.Add((&Incident{Kind: "storm", Text: "s[1]"}).Message())
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _ = ParseHello(b)
		_, _ = parseWelcome(b)
		_, _ = ParseViolation(b)
		if want, _, err := ParseVirtual(b); err == nil && len(want) > mostVirtual {
			t.Errorf("accepted %d virtual ports", len(want))
		}
		_, _, _ = ParsePauses(b)
		_, _ = parseIncident(b)
		if p, err := parsePort(b); err == nil && (p.MTU.Bytes() < 256 || p.MTU.Bytes() > 4096 || p.LMC > 7) {
			t.Errorf("accepted the port %+v", p)
		}
	})
}
