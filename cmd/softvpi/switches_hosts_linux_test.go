package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

// Systems, each with a TAP of its driver in a namespace of its own, reach each other over leaves and spines, and move bytes by TCP.
func TestSystemsOnSwitches(t *testing.T) {
	systemtest.Mark(t)
	if out, err := exec.Command("unshare", "-n", "sh", "-c", "ping -V && iperf3 -v").CombinedOutput(); err != nil || os.Geteuid() != 0 {
		t.Skipf("needs root, namespaces, ping and iperf3: %v %s", err, out)
	}
	s := runSwitches(t, `{"topology": {"kind": "leaf-spine", "leaves": 2, "spines": 2, "hosts": 1, "rate": "1Gb/s"}}`, "--timing")
	var systems []place
	var drivers []*process
	for i := range 2 {
		p := newPlace(t)
		p.env = append(p.env, "XDG_RUNTIME_DIR="+s.place.dir)
		p.start = func(c *exec.Cmd) error {
			c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
			return c.Start()
		}
		d := p.spawn(t, "up", "--skip-self-check", "--fabric", s.name, "--adapter",
			fmt.Sprintf("a=10.96.0.%d/24,fabric=host%d,host=tap:vpi0", i+1, i))
		d.until(t, "listening")
		systems, drivers = append(systems, p), append(drivers, d)
	}
	inside := func(i int, args ...string) (string, error) {
		out, err := exec.Command("nsenter", append([]string{"-t", strconv.Itoa(drivers[i].cmd.Process.Pid), "-n"}, args...)...).CombinedOutput()
		return string(out), err
	}
	for i := range systems {
		for _, line := range []string{fmt.Sprintf("ip addr add 10.96.0.%d/24 dev vpi0", i+1), "ip link set vpi0 up"} {
			if out, err := inside(i, strings.Fields(line)...); err != nil {
				t.Fatalf("%s: %v %s", line, err, out)
			}
		}
	}
	var out string
	if !await.Until(func() bool {
		var err error
		out, err = inside(1, "ping", "-c", "3", "-i", "0.2", "-W", "1", "10.96.0.1")
		return err == nil && strings.Contains(out, "3 received")
	}) {
		t.Errorf("%s%s", out, s.do("ports"))
	}
	served := exec.Command("nsenter", "-t", strconv.Itoa(drivers[0].cmd.Process.Pid), "-n", "iperf3", "-s")
	if err := served.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = served.Process.Kill()
		_ = served.Wait()
	})
	var report struct {
		End struct {
			Received struct {
				Bytes float64 `json:"bytes"`
				Rate  float64 `json:"bits_per_second"`
			} `json:"sum_received"`
		} `json:"end"`
	}
	// With -J its status is 0 even if nobody listens yet.
	if !await.Until(func() bool {
		var err error
		out, err = inside(1, "iperf3", "-c", "10.96.0.1", "-n", "100M", "-J")
		return err == nil && json.Unmarshal([]byte(out), &report) == nil && report.End.Received.Bytes > 0
	}) {
		t.Fatalf("iperf3: %s%s", out, s.do("ports"))
	}
	r := report.End.Received
	t.Logf("TCP over leaves and spines of 1 Gb/s: %.2f Gb/s, %.0f bytes", r.Rate/1e9, r.Bytes)
	if r.Rate > 1e9 || r.Bytes < 90e6 {
		t.Errorf("%.2f Gb/s over links of 1 Gb/s, %.0f bytes", r.Rate/1e9, r.Bytes)
	}
	if p := s.port("leaf1[1]"); p.InFrames == 0 || p.Peer != "host1" {
		t.Errorf("%+v", p)
	}
}

// Two drivers on two hosts plug into the Ethernet of a fabric on a third over UDP: RDMA crosses its switch, TAPs of theirs ping each
// other, the pauses of an adapter are told to the fabric, and a cable that is pulled takes one down.
func TestDriversOnSwitchesOfAnotherHost(t *testing.T) {
	systemtest.Mark(t)
	systemtest.Programs(t, "ip", "nsenter", "ping")
	h := newHosts(t, 1500)
	s := &switches{t: t, place: h.place(t, 0), name: fmt.Sprintf("udp-%d", os.Getpid())}
	s.file = s.place.dir + "/fabric.json"
	file := `{"topology": {"kind": "links", "hosts": ["a", "b"], "switches": ["s"], "links": [
		{"from": "a", "to": "s", "rate": "2Gb/s"}, {"from": "b", "to": "s", "rate": "400Mb/s"}]}, "switch": {"pfc": [0], "xoff": "60KB"}}`
	if err := os.WriteFile(s.file, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	s.run = s.place.spawn(t, "fabric", "run", s.file, "--name", s.name, "--timing", "--cables", "[::]:7069")
	s.run.until(t, "udp://[::]:7069")
	var at [2]place
	var drivers [2]*process
	for i, where := range []string{"udp://10.78.1.1", "udp://[fd78:2::1]:7069"} {
		at[i] = h.place(t, i+1)
		drivers[i] = at[i].spawn(t, "up", "--skip-self-check", "--fabric", where, "--adapter",
			fmt.Sprintf("x=10.95.0.%d/24,fabric=%c,linkmtu=4200,host=tap:vpi0", i+1, 'a'+i))
		drivers[i].until(t, "listening")
	}
	server := at[0].spawn(t, "nd_rping", "-s", "-a", "10.95.0.1")
	server.until(t, "listening")
	at[1].ok(t, "nd_rping", "-c", "-V", "-a", "10.95.0.1", "-C", "20", "-S", "10000")
	inside := func(i int, words ...string) (string, error) {
		out, err := exec.Command("nsenter", append([]string{"-t", strconv.Itoa(drivers[i].cmd.Process.Pid), "-n"}, words...)...).CombinedOutput()
		return string(out), err
	}
	for i := range at {
		for _, line := range []string{fmt.Sprintf("ip addr add 10.95.0.%d/24 dev vpi0", i+1), "ip link set vpi0 up"} {
			if out, err := inside(i, strings.Fields(line)...); err != nil {
				t.Fatalf("%s: %v %s", line, err, out)
			}
		}
	}
	await.Eventually(t, "the systems ping each other", func() bool {
		out, err := inside(1, "ping", "-c", "3", "-i", "0.2", "-W", "1", "10.95.0.1")
		return err == nil && strings.Contains(out, "3 received")
	})
	// The sender's adapter obeys the pauses of priority 0: the fabric lets the sender's end of the link do so, and loses nothing.
	at[0].ok(t, "qos", "set", "x", "pfc=0")
	await.Eventually(t, "the fabric knows of the adapter's pauses", func() bool { return s.port("a").FlowControl == "PFC 0" })
	// A machine that stands still may cost frames in a round; none in the next shows that pauses keep them.
	if !await.Until(func() bool {
		before, lost := s.port("s[1]").PausesSent, s.dropped()
		served := at[1].spawn(t, "nd_write_bw", "-S", "10.95.0.2")
		served.until(t, "serving at")
		at[0].ok(t, "nd_write_bw", "-C", "10.95.0.2", "-L", "10.95.0.1", "-q", "4", "-D", "2")
		served.wait(t)
		return s.port("s[1]").PausesSent > before && s.dropped() == lost
	}) {
		t.Errorf("each round loses frames\n%s", s.do("ports"))
	}
	s.do("unlink", "b")
	await.Eventually(t, "the adapter is down", func() bool { return strings.Contains(at[1].ok(t, "status"), "x: down") })
	s.do("relink", "b")
	await.Eventually(t, "and up again", func() bool { return strings.Contains(at[1].ok(t, "status"), "x: up") })
	// What goes wrong in the fabric the drivers know as those of its own host do.
	hear := func(what string) {
		await.Eventually(t, "both drivers tell of "+what, func() bool {
			_, _ = inside(0, "ping", "-c", "1", "-W", "1", "10.95.0.2")
			return strings.Contains(at[0].ok(t, "events", "list"), what) && strings.Contains(at[1].ok(t, "events", "list"), what)
		})
	}
	s.do("storm", "b", "0")
	hear("storm: s[2] priority 0 is paused for long")
	s.do("storm", "b", "none")
	hear("storm: s[2] priority 0 goes on")
}

// dropped returns how many frames from a to b the switch had no room for.
func (s *switches) dropped() uint64 {
	s.t.Helper()
	in := s.port("s[1]")
	return in.BufferDrops + in.HeadroomDrops + s.port("s[2]").QueueDrops
}
