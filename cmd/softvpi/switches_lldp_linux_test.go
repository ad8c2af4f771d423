package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

// Programs written elsewhere hear a live switch by LLDP over the TAPs of drivers: lldpad, with a pretended network card below it, does
// what the switch offers by DCBX, anew when the switch is changed by command, and lldpd knows the switch and its port. The switch knows
// them, until their cables are pulled.
func TestSwitchSpeaksLLDP(t *testing.T) {
	systemtest.Mark(t)
	systemtest.Programs(t, "lldpd", "lldpcli")
	h := linuxHosts(t, 1500)
	s := runSwitches(t, `{"topology": {"kind": "links", "hosts": ["a", "b"], "switches": ["s"], "links": [
		{"from": "a", "to": "s"}, {"from": "b", "to": "s"}]},
		"switch": {"pfc": [3], "weights": [40, 1, 9, 50, 0, 0, 0, 0], "strict": [4, 5, 6, 7], "dcbx": "ieee", "applications": "port:4791=3"}}`)
	for i, node := range []string{"a", "b"} {
		x := h[i]
		x.env = append(x.env, "XDG_RUNTIME_DIR="+s.place.dir)
		x.driver = x.spawn(t, "up", "--skip-self-check", "--fabric", s.name, "--adapter", "x="+x.ip+"/24,fabric="+node+",host=tap:vpi0")
		x.driver.until(t, "listening")
		x.shell(t, "ip link set vpi0 up")
	}
	o := h[0].lldpad(t, "vpi0")
	o.tool(t, "-T", "-V", "PFC", "willing=yes")
	o.tool(t, "-T", "-V", "ETS-CFG", "willing=yes")
	o.programmed(t, "pfc", "3:on")
	o.programmed(t, "ets", "tc-bw 0:40 1:1 2:9 3:50")
	o.programmed(t, "ets", "4:strict")
	o.programmed(t, "app", "port-prio 4791:3")
	await.Eventually(t, "the switch knows that lldpad takes what it offers", func() bool {
		return strings.Contains(s.do("lldp", "s"), "which takes ETS, PFC") && strings.Contains(s.port("s[1]").DCBX, "by ieee")
	})
	s.do("pfc", "s[1]", "5")
	o.programmed(t, "pfc", "3:off 4:off 5:on")
	if err := os.Chmod(h[1].dir, 0o711); err != nil { // lldpcli has a user of its own
		t.Fatal(err)
	}
	socket := filepath.Join(h[1].dir, "lldpd")
	h[1].begin(t, "lldpd", "-d", "-u", socket, "-I", "vpi0", "-S", "a system of the test")
	shown := func() string { return h[1].shell(t, "lldpcli -u "+socket+" -f keyvalue show neighbors details") }
	await.Eventually(t, "lldpd knows the switch", func() bool { return strings.Contains(shown(), ".chassis.name=s") })
	out := shown()
	for _, want := range []string{".port.ifname=s[2]", ".port.descr=to b", ".chassis.descr=SoftVPI Ethernet switch", ".chassis.Bridge.enabled=on",
		".port.ttl=121", "oui=00,80,C2"} {
		if !strings.Contains(out, want) {
			t.Errorf("lldpd does not show %s:\n%s", want, out)
		}
	}
	await.Eventually(t, "the switch knows lldpd", func() bool { return strings.Contains(s.port("s[2]").Neighbour, "port vpi0") })
	s.do("unlink", "a")
	if out := s.do("lldp", "s"); !strings.Contains(out, "s[1] hears nobody") || strings.Contains(out, "s[2] hears nobody") {
		t.Errorf("with the first cable out\n%s", out)
	}
}
