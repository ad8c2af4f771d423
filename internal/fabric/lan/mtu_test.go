package lan

import (
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/fabric/ethernet"
)

// TestMTUCommand: the MTU of a port and of a switch is changed while it runs; what is longer is counted, and shown, and no other drop.
func TestMTUCommand(t *testing.T) {
	b := star(t, false, ethernet.PortConfig{}, 1e9, 1e9)
	from, to := b.plug("h0"), b.plug("h1")
	b.learned(from, to)
	passes := func(n int) bool {
		t.Helper()
		from.Transmit(b.now, packet(0, 1, 0, n+14))
		b.to(b.now.Add(1000000))
		got, _ := b.drain(to)
		return got == 1
	}
	if !passes(4000) {
		t.Error("without a limit nothing passes")
	}
	b.do("mtu s[2] 1500")
	if !passes(1500) || passes(1501) {
		t.Error("an MTU of 1500 where frames leave is another one")
	}
	b.do("mtu s 1000")
	if !passes(1000) || passes(1001) {
		t.Error("an MTU of 1000 is another one")
	}
	in, out := b.State(b.now, ethernet.End{Node: 2, Port: 0}), b.State(b.now, ethernet.End{Node: 2, Port: 1})
	if in.TooLong != 1 || out.TooLong != 1 || in.Refused+out.Refused != 0 || in.MTU != 1000 {
		t.Errorf("the ports are %+v and %+v", in, out)
	}
	if text := b.do("port s[1]"); !strings.Contains(text, "MTU 1000") || !strings.Contains(text, "  too long               1\n") {
		t.Errorf("it is shown as\n%s", text)
	}
	b.do("mtu s all")
	if !passes(4000) || b.State(b.now, ethernet.End{Node: 2}).MTU != 0 {
		t.Error("without a limit again not all passes")
	}
	for command, want := range map[string]string{
		"mtu s 575": "mtu 575; allowed: 576 to ", "mtu s many": `mtu "many"; allowed: bytes, such as 1500, or all`,
		"mtu x 1500": "none of the Ethernet",
		"mtu s":      "1 arguments; allowed: mtu PORT|SWITCH 1500|all", "mtu s 99999": "allowed: 576 to 9216, or all",
	} {
		if _, _, err := b.Command(b.now, strings.Fields(command)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", command, err, want)
		}
	}
}
