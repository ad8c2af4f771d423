package main

import (
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

// TestSymptoms_SwitchMTU: adapters whose MTU is above the switch's connect, and lose what is longer; the page's commands find the cause
// at the switch, and the adapters' MTU below that of the switch ends it.
func TestSymptoms_SwitchMTU(t *testing.T) {
	systemtest.Mark(t)
	onPage(t, "packets are lost: the MTU is above the switch's |")
	s := runSwitches(t, `{"topology": {"kind": "star", "hosts": 2}, "switch": {"mtu": 1500}}`)
	a, b := s.driver("a", "10.98.0.1/24,fabric=host0,linkmtu=4200"), s.driver("b", "10.98.0.2/24,fabric=host1,linkmtu=4200")
	write := func(size string) (int, string) {
		t.Helper()
		server := a.spawn(t, "nd_rping", "-s", "-a", "10.98.0.1")
		server.until(t, "listening")
		code, out, errs := b.run(t, "nd_rping", "-c", "-V", "-a", "10.98.0.1", "-C", "2", "-S", size)
		server.wait(t)
		return code, out + errs
	}
	if code, said := write("1000"); code != 0 {
		t.Errorf("short messages: status %d, %s", code, said)
	}
	if code, said := write("8000"); code != 1 {
		t.Errorf("long messages: status %d, %s", code, said)
	}
	if out := a.ok(t, "status"); !strings.Contains(out, "of link MTU 4200") {
		t.Errorf("the status shows\n%s", out)
	}
	if p := s.port("host1"); p.TooLong != 0 {
		t.Errorf("the host's end is %+v", p)
	}
	if out := s.do("port", "switch[2]"); !strings.Contains(out, "MTU 1500") || s.port("switch[2]").TooLong == 0 {
		t.Errorf("the switch's port shows\n%s", out)
	}
	s.do("mtu", "switch", "all")
	if code, said := write("8000"); code != 0 {
		t.Errorf("long messages without a limit: status %d, %s", code, said)
	}
	s.do("mtu", "switch", "1500")
	for _, x := range []struct {
		place
		name string
	}{{a, "a"}, {b, "b"}} {
		x.ok(t, "reg", "add", "*JumboPacket", "--adapter", x.name, "/d", "1514", "/f")
		x.ok(t, "adapter", "restart", x.name)
	}
	if code, said := write("8000"); code != 0 {
		t.Errorf("long messages from adapters with a shorter MTU: status %d, %s\n%s", code, said, a.ok(t, "status"))
	}
}
