package encap

import (
	"encoding/hex"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/wire/eth"
	"github.com/softvpi/softvpi/wire/ib"
)

var modes = map[string]Mode{"v1": RoCEv1, "v1.25": RoCEv125, "v2": RoCEv2}

// TestTranscripts shows the frames of every mode, header by header, and what becomes of them on arrival. The commands
// are
//
// seal mode= src= dst= [vlan= class= label= hops= port= op= payload=]
// open mode= to= followed by a frame in hexadecimal
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "seal":
				return sealTranscript(t, d)
			case "open":
				return openTranscript(t, d)
			}
			t.Fatalf("%s: no command %q", d.Pos, d.Cmd)
			return ""
		})
	})
}

func argument(d *datadriven.TestData, name, otherwise string) string {
	for _, a := range d.CmdArgs {
		if a.Key == name && len(a.Vals) == 1 {
			return a.Vals[0]
		}
	}
	return otherwise
}

func number(t *testing.T, d *datadriven.TestData, name string, bits int) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(argument(d, name, "0"), 0, bits)
	if err != nil {
		t.Fatalf("%s: %s: %v", d.Pos, name, err)
	}
	return n
}

func sealTranscript(t *testing.T, d *datadriven.TestData) string {
	route := frame.Route{
		Src: netip.MustParseAddr(argument(d, "src", "")), Dst: netip.MustParseAddr(argument(d, "dst", "")),
		SrcPort: uint16(number(t, d, "port", 16)), TrafficClass: uint8(number(t, d, "class", 8)), HopLimit: uint8(number(t, d, "hops", 8)),
		FlowLabel: uint32(number(t, d, "label", 20)), VLAN: uint16(number(t, d, "vlan", 16)),
		SrcMAC: mac(t, "02:00:00:00:00:01"), DstMAC: mac(t, "02:00:00:00:00:02"),
	}
	out := make([]frame.Out, 1)
	fill(&out[0], &route, []byte(argument(d, "payload", "")))
	open(t, modes[argument(d, "mode", "")], raw, route.Src).Seal(out)
	return dissect(t, bytesOf(&out[0]))
}

func mac(t *testing.T, s string) [6]byte {
	t.Helper()
	m, err := net.ParseMAC(s)
	if err != nil {
		t.Fatal(err)
	}
	return [6]byte(m)
}

// dissect returns a frame as text with one line for each header.
func dissect(t *testing.T, b []byte) string {
	t.Helper()
	var s strings.Builder
	line := func(what string, n int) {
		fmt.Fprintf(&s, "%-9s %s\n", what, hex.EncodeToString(b[:n]))
		b = b[n:]
	}
	e2, _, err := eth.ParseEthernet(b)
	if err != nil {
		t.Fatal(err)
	}
	line("ethernet", e2.Len())
	switch e2.Type {
	case eth.TypeRoCEv1:
		line("grh", ib.GRHLen)
	case eth.TypeIPv4:
		line("ipv4", eth.IPv4Len)
		line("udp", eth.UDPLen)
	case eth.TypeIPv6:
		line("ipv6", eth.IPv6Len)
		line("udp", eth.UDPLen)
	}
	line("bth", ib.BTHLen)
	line("payload", len(b)-ib.ICRCLen)
	line("icrc", ib.ICRCLen)
	return s.String()
}

func openTranscript(t *testing.T, d *datadriven.TestData) string {
	b, err := hex.DecodeString(strings.Join(strings.Fields(d.Input), ""))
	if err != nil {
		t.Fatalf("%s: %v", d.Pos, err)
	}
	e := open(t, modes[argument(d, "mode", "")], raw, netip.MustParseAddr(argument(d, "to", "")))
	in := []frame.In{{Data: b, Raw: true}}
	if e.Open(in) == 0 {
		return strings.TrimLeft(fmt.Sprintf("dropped %+v", e.Counters()), " ")
	}
	p := in[0]
	bth := ib.BTH(p.Data)
	return fmt.Sprintf("from %v port %d to %v class %d label %#x hops %d\n%v to QP %#x PSN %#x, payload %q pad %d", p.Src, p.SrcPort, p.Dst,
		p.TrafficClass, p.FlowLabel, p.HopLimit, bth.Opcode(), uint32(bth.DestQP()), uint32(bth.PSN()),
		p.Data[ib.BTHLen:len(p.Data)-bth.PadCount()], bth.PadCount())
}
