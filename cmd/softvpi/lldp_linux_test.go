package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

// speaker is a host with an adapter that speaks LLDP and DCBX.
type speaker struct{ *linuxHost }

// speak starts the host's driver with an adapter that speaks DCBX.
func (h *linuxHost) speak(t *testing.T, wire string) speaker {
	t.Helper()
	x := speaker{h}
	h.driver = h.spawn(t, "up", "--skip-self-check", "--adapter", "x="+h.ip+"/24,"+wire+",mac=02:00:00:00:01:0"+h.ip[len(h.ip)-1:])
	h.driver.until(t, "listening")
	for _, line := range []string{
		"reg add DcbxMode --adapter x /d 2",
		"mlxconfig -d mt4115_pciconf0 -y set LLDP_NB_TX_MODE_P1=2 LLDP_NB_RX_MODE_P1=2 LLDP_NB_DCBX_P1=1",
		"adapter restart x",
	} {
		x.do(t, line)
	}
	return x
}

func (x speaker) do(t *testing.T, line string) {
	t.Helper()
	if code, out, errs := x.run(t, strings.Fields(line)...); code != 0 {
		t.Fatalf("%s: %d %s%s", line, code, out, errs)
	}
}

// agrees waits for what the adapter is to work by.
func (x speaker) agrees(t *testing.T, want api.OperativeQoS) {
	t.Helper()
	var got *api.QoSStatus
	if !await.Until(func() bool { got = x.status(t).Adapters[0].QoS; return got.Operative == want }) {
		t.Fatalf("works by %+v, want %+v; %+v", got.Operative, want, got)
	}
}

// oracle is Debian's lldpad on an interface of a host, with a pretended network card below it that has DCB.
type oracle struct {
	*linuxHost
	dev, dir string
	daemon   *exec.Cmd
}

// lldpad starts it.
func (h *linuxHost) lldpad(t *testing.T, dev string) *oracle {
	t.Helper()
	systemtest.Programs(t, "lldpad", "lldptool", "dcb", "gcc")
	o := &oracle{linuxHost: h, dev: dev, dir: h.dir}
	card := filepath.Join(o.dir, "dcbnl.so")
	if out, err := exec.Command("gcc", "-O2", "-shared", "-fPIC", "-o", card, "../../test/ethernet/dcbnl.c", "-ldl").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := os.WriteFile(filepath.Join(o.dir, "lldpad.conf"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	o.start(t)
	o.tool(t, "-L", "adminstatus=rxtx")
	for _, v := range []string{"ETS-CFG", "ETS-REC", "PFC", "APP"} {
		o.tool(t, "-T", "-V", v, "enableTx=yes")
	}
	return o
}

// start starts the daemon. Its control socket is abstract, hence the namespace's, and it refuses to be the second of a /dev/shm.
func (o *oracle) start(t *testing.T) {
	t.Helper()
	o.daemon = o.begin(t, "sh", "-c", "mount -t tmpfs shm /dev/shm; exec env "+o.card()+" lldpad -f "+filepath.Join(o.dir, "lldpad.conf"))
	o.shell(t, "lldptool -p")
}

// card is the environment with the pretended network card.
func (o *oracle) card() string {
	return "LD_PRELOAD=" + filepath.Join(o.dir, "dcbnl.so") + " DCBNL_IF=" + o.dev + " DCBNL_STATE=" + filepath.Join(o.dir, "card")
}

// stop ends the daemon, which says so to its neighbours.
func (o *oracle) stop(t *testing.T) {
	t.Helper()
	if err := o.daemon.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = o.daemon.Wait()
}

// tool runs lldptool.
func (o *oracle) tool(t *testing.T, what string, words ...string) string {
	t.Helper()
	return o.shell(t, "lldptool "+what+" -i "+o.dev+" "+strings.Join(words, " "))
}

// programmed waits until lldpad has told the card so: what iproute2's dcb shows of it.
func (o *oracle) programmed(t *testing.T, object, want string) {
	t.Helper()
	var out string
	if !await.Until(func() bool {
		out = o.shell(t, o.card()+" dcb "+object+" show dev "+o.dev)
		return strings.Contains(out, want)
	}) {
		t.Fatalf("dcb %s: %s, want %q", object, out, want)
	}
}

const (
	classesOfOracle = "tsa=0:ets,1:ets,2:strict,3:ets,4:strict,5:strict,6:strict,7:strict up2tc=0:0,1:0,2:1,3:3,4:0,5:0,6:0,7:0 tcbw=40,10,0,50,0,0,0,0"
	ownOfAdapter    = "qos set x willing=off pfc=5 prio-tc=5:1 tc-bw=0:30,1:70 app=port:4791=5"
)

// TestLLDP_Lldpad: an adapter and Debian's lldpad agree, whoever is willing, on a veth pair and on a TAP; each forgets the other when
// it ends, and they agree again when it is back. tshark decodes all that both said.
func TestLLDP_Lldpad(t *testing.T) {
	systemtest.Mark(t)
	for _, wire := range []string{"interface=wire", "tap=wire0"} {
		t.Run(wire, func(t *testing.T) {
			h := linuxHosts(t, 1500)
			at, dev := h[1], "wire"
			h[1].shell(t, "ip link set wire address 02:00:00:00:02:00")
			if strings.HasPrefix(wire, "tap") {
				at, dev = h[0], "wire0"
			}
			x := h[0].speak(t, wire)
			if at == h[0] {
				at.shell(t, "ip link set wire0 address 02:00:00:00:02:00 up")
			}
			file := filepath.Join(h[0].dir, "lldp.pcap")
			h[0].begin(t, "tshark", "-q", "-i", dev, "-f", "ether proto 0x88cc", "-w", file)
			lldpadAgrees(t, x, at.lldpad(t, dev))
			out, err := exec.Command("tshark", "-n", "-r", file, "-V", "-O", "lldp").Output()
			if err != nil && len(out) == 0 {
				t.Fatal(err)
			}
			for _, want := range []string{"System Description: SoftVPI", "ETS Recommendation", "PFC for Priority 5: Enabled", "Application Priority: 5",
				"Seconds: 0"} {
				if !strings.Contains(string(out), want) {
					t.Errorf("tshark does not decode %q", want)
				}
			}
			if strings.Contains(string(out), "Malformed") {
				t.Errorf("malformed:\n%s", out)
			}
		})
	}
}

func lldpadAgrees(t *testing.T, x speaker, o *oracle) {
	// lldpad leads.
	o.tool(t, "-T", "-V", "PFC", "enabled=3", "willing=no")
	o.tool(t, "-T", "-V", "ETS-CFG", "willing=no", classesOfOracle)
	o.tool(t, "-T", "-V", "ETS-REC", classesOfOracle)
	o.tool(t, "-T", "-V", "APP", "app=3,4,4791")
	led := api.OperativeQoS{PFC: "3", PFCFrom: "peer", PrioTC: "2:1,3:3", TCBandwidth: "0:40,1:10,3:50", ETSFrom: "peer",
		Applications: "port:4791=3", ApplicationsFrom: "peer"}
	x.agrees(t, led)
	if out := o.tool(t, "-n -t"); !strings.Contains(out, "SoftVPI") || !strings.Contains(out, "Station Only") || !strings.Contains(out, x.ip) {
		t.Errorf("lldpad has heard\n%s", out)
	}
	// The adapter leads.
	o.tool(t, "-T", "-V", "PFC", "enabled=none", "willing=yes")
	o.tool(t, "-T", "-V", "ETS-CFG", "willing=yes")
	o.tool(t, "-T", "-V", "APP", "-d", "app=3,4,4791")
	x.do(t, ownOfAdapter)
	o.programmed(t, "pfc", "5:on")
	o.programmed(t, "ets", "tc-bw 0:30 1:70 2:0")
	o.programmed(t, "ets", "prio-tc 0:0 1:0 2:0 3:0 4:0 5:1")
	o.programmed(t, "app", "port-prio 4791:5")
	// It ends, and is back.
	x.do(t, "adapter disable x")
	o.programmed(t, "pfc", "5:off")
	x.do(t, "adapter enable x")
	o.programmed(t, "pfc", "5:on")
	// lldpad ends, and is back: its configuration is kept.
	x.do(t, "qos set x willing=on pfc=default prio-tc=default tc-bw=default app=default")
	o.tool(t, "-T", "-V", "PFC", "enabled=3", "willing=no")
	x.agreesPFC(t, "3 (peer)")
	o.stop(t)
	x.agreesPFC(t, "none (default)")
	o.start(t)
	x.agreesPFC(t, "3 (peer)")
	// Both are willing: the adapter's MAC is lower, so it takes lldpad's, and lldpad nobody's (IEEE 802.1Q, 38.4.2).
	o.tool(t, "-T", "-V", "PFC", "enabled=4", "willing=yes")
	x.do(t, "qos set x pfc=6")
	x.agreesPFC(t, "4 (peer)")
	o.programmed(t, "pfc", "4:on 5:off 6:off")
}

// agreesPFC waits for a PFC with its origin.
func (x speaker) agreesPFC(t *testing.T, want string) {
	t.Helper()
	await.Eventually(t, "PFC "+want, func() bool {
		o := x.status(t).Adapters[0].QoS.Operative
		return o.PFC+" ("+o.PFCFrom+")" == want
	})
}

// TestLLDP_Lldpd: another implementation, lldpd, and an adapter know each other, with all of the basic TLVs, and forget each other.
func TestLLDP_Lldpd(t *testing.T) {
	systemtest.Mark(t)
	systemtest.Programs(t, "lldpd", "lldpcli")
	h := linuxHosts(t, 1500)
	x := h[0].speak(t, "interface=wire")
	socket := filepath.Join(h[1].dir, "lldpd")
	if err := os.Chmod(h[1].dir, 0o711); err != nil { // lldpcli has a user of its own
		t.Fatal(err)
	}
	daemon := h[1].begin(t, "lldpd", "-d", "-u", socket, "-I", "wire", "-S", "a system of the test")
	shown := func() string { return h[1].shell(t, "lldpcli -u "+socket+" -f keyvalue show neighbors details") }
	await.Eventually(t, "lldpd knows the adapter", func() bool { return strings.Contains(shown(), ".chassis.descr=SoftVPI") })
	out := shown()
	for _, want := range []string{".chassis.mac=02:00:00:00:01:01", ".port.mac=02:00:00:00:01:01", ".port.descr=x", ".chassis.mgmt-ip=" + h[0].ip,
		".chassis.Station.enabled=on", ".port.ttl=121", "oui=00,80,C2"} {
		if !strings.Contains(out, want) {
			t.Errorf("lldpd does not show %s:\n%s", want, out)
		}
	}
	await.Eventually(t, "the adapter knows lldpd", func() bool {
		p := x.status(t).Adapters[0].QoS.Peers
		return len(p) == 1 && p[0].Description == "a system of the test" && p[0].PortName == "wire" && p[0].DCBX == ""
	})
	x.do(t, "adapter disable x")
	await.Eventually(t, "lldpd forgets it", func() bool { return !strings.Contains(shown(), "SoftVPI") })
	x.do(t, "adapter enable x")
	await.Eventually(t, "lldpd knows it again", func() bool { return strings.Contains(shown(), "SoftVPI") })
	if err := daemon.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	await.Eventually(t, "the adapter forgets it", func() bool { return len(x.status(t).Adapters[0].QoS.Peers) == 0 })
}
