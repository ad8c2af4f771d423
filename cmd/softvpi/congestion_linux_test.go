package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	tcx "github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

// TestCongestionControl: two drivers on two hosts, between which one packet of 50 is marked, as by a switch with a long queue:
// on the way from sockets by the kernel, where it says that it may be marked. Once congestion control is enabled, while both
// work, the receiver answers with notifications that tshark decodes and that both sides count, and the sender slows down; once
// it is disabled, nothing is marked or limited any more.
func TestCongestionControl(t *testing.T) {
	systemtest.Mark(t, systemtest.Alone)
	for _, sockets := range []bool{true, false} {
		t.Run(fmt.Sprintf("sockets %v", sockets), func(t *testing.T) { congestionControl(t, sockets) })
	}
}

func congestionControl(t *testing.T, sockets bool) {
	a, b := congestedPair(t, sockets)
	mark := a.mark
	if !sockets { // what it sends meets no program
		mark = a.impair
	}
	unmark := mark(t)

	a.write(t, b)
	if n := b.counter(t, "received_marked_packets"); n != 0 || a.counter(t, "received_cnps") != 0 {
		t.Errorf("disabled: %d packets marked", n)
	}
	for _, x := range []congested{a, b} {
		x.do(t, "-Enable")
		x.do(t, "-Set", "-DcqcnCnpDscp", "48")
	}
	file := filepath.Join(b.dir, "cnps.pcap")
	b.capture(t, file)
	running := a.transfer(t, b, "-D", "600")
	await.Eventually(t, "a limited rate", func() bool {
		return slices.ContainsFunc(a.status(t).Adapters[0].QPs, func(q api.QPStatus) bool {
			return q.Rate != nil && q.Rate.Current < 50000
		})
	})
	unmark()
	// What has come behind the last marked packet, more than there is room for on the way, says that all of these have been handled.
	passed := b.status(t).Adapters[0].Link.ReceivedBytes + 8<<20
	await.Eventually(t, "packets that are not marked arrive", func() bool { return b.status(t).Adapters[0].Link.ReceivedBytes > passed })
	sent, received := 0, 0
	await.Eventually(t, "the notifications under way", func() bool {
		sent, received = b.counter(t, "sent_cnps"), a.counter(t, "received_cnps")
		return sent == received
	})
	if sent == 0 || a.counter(t, "handled_cnps") != received || a.counter(t, "sent_cnps") != 0 {
		t.Errorf("%d notifications, %d handled; %d sent by the other side", sent, a.counter(t, "handled_cnps"), a.counter(t, "sent_cnps"))
	}
	if n := b.counter(t, "received_marked_packets"); n < sent {
		t.Errorf("%d notifications for %d marked packets", sent, n)
	}
	checkNotices(t, file, sent, a.ip)
	running.stop(t)

	for _, x := range []congested{a, b} {
		x.do(t, "-Disable")
	}
	mark(t)
	before := b.counter(t, "received_marked_packets")
	a.write(t, b)
	if n := b.counter(t, "sent_cnps"); n != sent || b.counter(t, "received_marked_packets") != before {
		t.Errorf("disabled again: %d more notifications", n-sent)
	}
}

// congestedPair are two hosts with drivers, over UDP sockets or whole frames.
func congestedPair(t *testing.T, sockets bool) (a, b congested) {
	t.Helper()
	h := linuxHosts(t, 1500)
	for i, x := range h {
		x.shell(t, fmt.Sprintf("ip addr replace 198.51.100.%d/24 dev wire", i+1))
		adapter := fmt.Sprintf("x=%s/24,interface=wire,mac=02:00:00:00:01:0%d", x.ip, i)
		if sockets {
			adapter = "x=" + x.ip
			x.shell(t, "ip addr replace "+x.ip+"/24 dev wire")
		}
		x.driver = x.spawn(t, "up", "--skip-self-check", "--adapter", adapter)
		x.driver.until(t, "listening")
	}
	return congested{h[0]}, congested{h[1]}
}

// checkNotices looks at captured notifications as tshark decodes them.
func checkNotices(t *testing.T, file string, sent int, to string) {
	t.Helper()
	var notices []string
	await.Eventually(t, "a capture of all notifications", func() bool {
		notices = decode(t, file)
		return len(notices) >= sent
	})
	for _, line := range notices {
		// Destination, DSCP, ECN field, BTH opcode, P_Key.
		if f := strings.Split(line, "\t"); f[0] != to || f[1] != "48" || f[2] != "0" || f[3] != "129" || f[4] != "65535" {
			t.Fatalf("tshark decodes a notification as %q", line)
		}
	}
	if len(notices) != sent {
		t.Errorf("%d notifications on the wire, %d counted", len(notices), sent)
	}
}

// congested is a host with a driver and congestion control.
type congested struct{ *linuxHost }

// do changes congestion control.
func (x congested) do(t *testing.T, args ...string) {
	t.Helper()
	if code, out, errs := x.run(t, append([]string{"mlx5cmd", "-QosConfig", "-Dcqcn", "-Name", "x"}, args...)...); code != 0 {
		t.Fatalf("%q: %d %s%s", args, code, out, errs)
	}
}

// counter returns a counter of the congestion control set.
func (x congested) counter(t *testing.T, name string) int {
	t.Helper()
	return x.count(t, "congestion_control."+name)
}

// count returns a counter of the adapter.
func (x congested) count(t *testing.T, name string) int {
	t.Helper()
	code, out, errs := x.run(t, "counters", "watch", "-sc", "1", "-si", "0.01", "-f", "csv", name)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	fields := strings.Split(lines[len(lines)-1], "\"")
	n, err := strconv.ParseFloat(fields[max(0, len(fields)-2)], 64)
	if code != 0 || err != nil {
		t.Fatalf("%s: %d %v %s%s", name, code, err, out, errs)
	}
	return int(n)
}

// transfer is a measurement in progress.
type transfer struct{ client, server *process }

// transfer writes to y, as nd_write_bw does.
func (x congested) transfer(t *testing.T, y congested, args ...string) transfer {
	t.Helper()
	s := y.spawn(t, "nd_write_bw", "-S", y.ip)
	s.until(t, "erv")
	return transfer{x.spawn(t, append([]string{"nd_write_bw", "-C", y.ip, "-t", "8"}, args...)...), s}
}

// stop ends a transfer that goes on.
func (r transfer) stop(t *testing.T) {
	t.Helper()
	if err := r.client.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	r.client.wait(t)
	r.server.wait(t)
}

// write writes 2000 messages to y.
func (x congested) write(t *testing.T, y congested) {
	t.Helper()
	r := x.transfer(t, y, "-n", "2000")
	for _, p := range []*process{r.client, r.server} {
		if code, out, errs := p.wait(t); code != 0 {
			t.Fatalf("%q: %d %s%s", p.cmd.Args[1:], code, out, errs)
		}
	}
}

// impair makes x mark one packet of 50 that it sends, whatever that says.
func (x congested) impair(t *testing.T) (clear func()) {
	t.Helper()
	set := func(what string) {
		if code, out, errs := x.run(t, "link", "set", "x", what); code != 0 {
			t.Fatalf("%d %s%s", code, out, errs)
		}
	}
	set("ecn=2%")
	return func() { set("none") }
}

// capture captures the notifications that x sends.
func (x congested) capture(t *testing.T, file string) {
	t.Helper()
	x.linuxHost.begin(t, "tshark", "-q", "-B", "16", "-i", "wire", "-f", "icmp or udp[8] = 0x81", "-w", file)
	await.Eventually(t, "tshark captures", func() bool {
		x.shell(t, "ping -c 1 198.51.100.1")
		s, err := os.Stat(file)
		return err == nil && s.Size() > 1000
	})
}

// decode returns what tshark says about the packets of a capture, which may be in the middle of one.
func decode(t *testing.T, file string) []string {
	t.Helper()
	out, _ := exec.Command("tshark", "-n", "-r", file, "-Y", "infiniband.bth.opcode", "-T", "fields", "-e", "ip.dst", "-e", "ip.dsfield.dscp", "-e", "ip.dsfield.ecn",
		"-e", "infiniband.bth.opcode", "-e", "infiniband.bth.p_key").Output()
	return strings.FieldsFunc(string(out), func(r rune) bool { return r == '\n' })
}

// mark makes the kernel mark one packet of 50 that leaves by x's wire, if it says that it may be marked.
func (x congested) mark(t *testing.T) (clear func()) {
	t.Helper()
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.SchedCLS, License: "MIT", Instructions: asm.Instructions{
		asm.Mov.Reg(asm.R6, asm.R1),
		asm.FnGetPrandomU32.Call(),
		asm.JGT.Imm(asm.R0, 1<<31/25, "pass"),
		asm.Mov.Reg(asm.R1, asm.R6),
		asm.FnSkbEcnSetCe.Call(),
		asm.Mov.Imm(asm.R0, -1).WithSymbol("pass"), // TCX_NEXT
		asm.Return(),
	}})
	if err != nil {
		t.Skip("needs the right to load a program into the kernel: ", err)
	}
	defer p.Close()
	var at tcx.Link
	err = x.inside(func() error {
		l, err := netlink.LinkByName("wire")
		if err != nil {
			return err
		}
		at, err = tcx.AttachTCX(tcx.TCXOptions{Interface: l.Attrs().Index, Program: p, Attach: ebpf.AttachTCXEgress})
		return err
	})
	if err != nil {
		t.Skip("needs a kernel with tcx (6.6): ", err)
	}
	clear = func() { _ = at.Close() }
	t.Cleanup(clear)
	return clear
}
