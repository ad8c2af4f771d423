package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/fabric/state"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

// switches is a fabric that runs, with a driver at each of its Ethernet hosts.
type switches struct {
	t     *testing.T
	name  string
	file  string
	place place
	run   *process
}

// runSwitches runs a fabric.
func runSwitches(t *testing.T, file string, options ...string) *switches {
	t.Helper()
	s := &switches{t: t, place: newPlace(t), name: fmt.Sprintf("test-%d-%x", os.Getpid(), rand.Uint32())}
	s.file = filepath.Join(s.place.dir, "fabric.json")
	if err := os.WriteFile(s.file, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	s.run = s.place.spawn(t, append([]string{"fabric", "run", s.file, "--name", s.name}, options...)...)
	s.run.until(t, "cables")
	return s
}

// driver starts a driver with one adapter at a host: adapter is what follows the name.
func (s *switches) driver(name, adapter string) place {
	s.t.Helper()
	p := newPlace(s.t)
	p.env = append(p.env, "XDG_RUNTIME_DIR="+s.place.dir)
	p.spawn(s.t, "up", "--skip-self-check", "--fabric", s.name, "--adapter", name+"="+adapter).until(s.t, "listening")
	return p
}

// do executes a command.
func (s *switches) do(command ...string) string {
	s.t.Helper()
	status, out, errs := s.place.run(s.t, append([]string{"fabric", "do", "--name", s.name}, command...)...)
	if status != 0 {
		s.t.Fatalf("%v: %d, %s", command, status, errs)
	}
	return out
}

// port returns the state of a port.
func (s *switches) port(name string) state.Port {
	s.t.Helper()
	var part state.Part
	if err := json.Unmarshal([]byte(s.do("state", "0")), &part); err != nil {
		s.t.Fatal(err)
	}
	for _, p := range part.Ports {
		if p.Host && p.Node == name || fmt.Sprintf("%s[%d]", p.Node, p.Port) == name {
			return p
		}
	}
	s.t.Fatalf("no port %s", name)
	return state.Port{}
}

// ok runs a tool of the place's driver.
func (p place) ok(t *testing.T, args ...string) string {
	t.Helper()
	status, out, errs := p.run(t, args...)
	if status != 0 {
		t.Fatalf("%q: %d, %s%s", args, status, out, errs)
	}
	return out
}

// authors are the parameters of DCQCN's authors.
var authors = strings.Fields("-DcqcnInitialAlphaValue 1023 -DcqcnDceTcpRtt 55 -DcqcnDceTcpG 4 -DcqcnRateReduceMonitorPeriod 50 " +
	"-DcqcnRpgTimeReset 55 -DcqcnRpgByteReset 0 -DcqcnRpgThreshold 5 -DcqcnRpgAiRate 40 -DcqcnRpgHaiRate 200 -DcqcnRateToSetOnFirstCnp 0")

// dcqcn turns congestion control on.
func (p place) dcqcn(t *testing.T, adapter string) {
	t.Helper()
	p.ok(t, "mlx5cmd", "-QosConfig", "-Dcqcn", "-Name", adapter, "-Enable")
	p.ok(t, append([]string{"mlx5cmd", "-QosConfig", "-Dcqcn", "-Name", adapter, "-Set"}, authors...)...)
}

// Two drivers of an unprivileged user on an Ethernet switch of a third process: RDMA crosses it, the rate of a link is kept,
// and a sender that is faster is slowed down by the switch's marks. InfiniBand nodes are in the same file.
func TestDriversOnAnEthernetSwitch(t *testing.T) {
	systemtest.Mark(t)
	s := runSwitches(t, `{"topology": {"kind": "links", "hosts": ["a", "b"], "switches": ["s"], "links": [
		{"from": "a", "to": "s", "rate": "500Mb/s"}, {"from": "b", "to": "s", "rate": "4Gb/s"}]},
		"switch": {"kmin": "20KB", "kmax": "200KB", "pmax": "10%"}, "infiniband": {"hosts": 2}}`, "--timing", "--sm")
	if out := s.run.said(); !strings.Contains(out, "2 channel adapters, 1 switches") || !strings.Contains(out, "2 hosts, 1 switches, 2 links") {
		t.Errorf("said %s", out)
	}
	a, b := s.driver("a", "10.98.0.1/24,fabric=a,linkmtu=4200"), s.driver("b", "10.98.0.2/24,fabric=b,linkmtu=4200")
	server := a.spawn(t, "nd_rping", "-s", "-a", "10.98.0.1")
	server.until(t, "listening")
	b.ok(t, "nd_rping", "-c", "-V", "-a", "10.98.0.1", "-C", "20")
	if out := s.do("macs", "s"); strings.Count(out, "VLAN 1 at s[") != 2 {
		t.Errorf("macs: %s", out)
	}
	if out := s.do("clients"); !strings.Contains(out, "adapter at a, up, of softvpi") {
		t.Errorf("clients: %s", out)
	}
	a.dcqcn(t, "a")
	b.dcqcn(t, "b")
	write := func() float64 {
		t.Helper()
		served := a.spawn(t, "nd_write_bw", "-S", "10.98.0.1")
		served.until(t, "serving at")
		out := b.ok(t, "nd_write_bw", "-C", "10.98.0.1", "-L", "10.98.0.2", "-D", "2")
		f := strings.Fields(out[strings.LastIndex(strings.TrimSpace(out), "\n"):])
		rate, err := strconv.ParseFloat(f[4], 64)
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return rate
	}
	if rate := write(); rate > 0.5 {
		t.Errorf("%.2f Gb/s over a link of 0.5 Gb/s", rate)
	} else {
		t.Logf("%.2f Gb/s over a link of 0.5 Gb/s", rate)
	}
	p := s.port("s[1]")
	if p.Marked == 0 || p.QueueDrops > 0 {
		t.Errorf("%d frames marked and %d dropped of %d", p.Marked, p.QueueDrops, p.OutFrames)
	}
	counters := b.ok(t, "counters", "get", "congestion_control")
	if handled := countOf(t, counters, "CNPs Handled"); handled == 0 {
		t.Errorf("the sender was not slowed down: %s", counters)
	}
	s.do("unlink", "a")
	await.Eventually(t, "the adapter knows that its cable is out", func() bool {
		return !strings.Contains(a.ok(t, "status"), "a: up")
	})
	s.do("relink", "s[1]")
	await.Eventually(t, "the adapter is up again", func() bool { return strings.Contains(a.ok(t, "status"), "a: up") })
}

// countOf returns a counter of what a tool has printed.
func countOf(t *testing.T, out, name string) int {
	t.Helper()
	for line := range strings.Lines(out) {
		if _, rest, ok := strings.Cut(line, name); ok {
			n, err := strconv.Atoi(strings.Fields(rest)[0])
			if err != nil {
				t.Fatalf("%v: %s", err, line)
			}
			return n
		}
	}
	t.Fatalf("no %s in %s", name, out)
	return 0
}

// The set-ups of examples/pfc, which are those of the manual: with every hop right the switches drop nothing, with one wrong they do.
// Hosts are set by their drivers alone.
func TestPFCHopByHop(t *testing.T) {
	systemtest.Mark(t)
	bin := t.TempDir()
	for _, name := range []string{"softvpi", "mlxconfig"} {
		if err := os.Symlink(os.Args[0], filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ script, wrong string }{
		{"pcp", ""}, {"pcp", "host0"}, {"pcp", "spine0"},
		{"dscp", ""}, {"dscp", "host1"}, {"dscp", "leaf1[3]"},
		{"pause", ""}, {"pause", "host0"}, {"pause", "leaf0[1]"},
		{"dcbx", ""}, {"dcbx", "host0"}, {"dcbx", "spine0[1]"},
	} {
		t.Run(c.script+" "+c.wrong, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			ctx, cancel := context.WithTimeout(context.Background(), mostWait)
			defer cancel()
			x := exec.CommandContext(ctx, "../../examples/pfc/"+c.script+".sh", strings.Fields(c.wrong)...)
			x.Cancel, x.WaitDelay = func() error { return x.Process.Signal(syscall.SIGTERM) }, time.Second
			x.Env = append(p.env, "PATH="+bin+":"+os.Getenv("PATH"))
			var errs bytes.Buffer
			x.Stderr = &errs
			out, err := x.Output()
			last := out[bytes.LastIndexByte(bytes.TrimSpace(out), '\n')+1:]
			var dropped, pauses int
			if _, scanned := fmt.Sscanf(string(last), "%d frames dropped, %d pauses", &dropped, &pauses); err != nil || scanned != nil {
				t.Fatalf("%v, %v: %s%s", err, scanned, out, errs.String())
			}
			if c.wrong == "" && (dropped != 0 || pauses == 0) || c.wrong != "" && dropped == 0 {
				t.Errorf("%d frames dropped, %d pauses\n%s", dropped, pauses, errs.String())
			}
		})
	}
}

// incast is two senders to one receiver at 2 Gb/s with congestion control, as it is simulated and as it runs live.
const incast = `{"topology": {"kind": "incast", "rate": "2Gb/s"}, "duration": "200ms",
	"switch": {"kmin": "40KB", "kmax": "400KB", "pmax": "10%"},
	"nic": {"dcqcn": "authors", "DcqcnEnablePrio0": 1, "mtu": 4096}, "workload": {"kind": "incast", "priority": 0}}`

// Two live senders come to share a port as fairly as the simulator says, from the same file: Jain's index of 600 MB is within 0.1.
func TestIncastIsAsFairAsSimulated(t *testing.T) {
	systemtest.Mark(t, systemtest.Alone)
	s := runSwitches(t, incast, "--timing")
	result := filepath.Join(s.place.dir, "result.json")
	s.place.ok(t, "simulate", s.file, "--json", result, "--quiet")
	text, err := os.ReadFile(result)
	if err != nil {
		t.Fatal(err)
	}
	var simulated struct {
		Summary struct {
			Jain float64 `json:"jain"`
		} `json:"summary"`
	}
	if err := json.Unmarshal(text, &simulated); err != nil || simulated.Summary.Jain == 0 {
		t.Fatalf("%v: %.400s", err, text)
	}
	receiver := s.driver("r", "10.97.0.9/24,fabric=receiver,linkmtu=4200")
	receiver.dcqcn(t, "r")
	var senders []place
	for i := range 2 {
		p := s.driver("s", fmt.Sprintf("10.97.0.%d/24,fabric=sender%d,linkmtu=4200", i+1, i))
		p.dcqcn(t, "s")
		senders = append(senders, p)
	}
	for i, p := range senders {
		port := strconv.Itoa(6830 + i)
		receiver.spawn(t, "nd_write_bw", "-S", "10.97.0.9", "-p", port).until(t, "serving at")
		p.spawn(t, "nd_write_bw", "-C", "10.97.0.9", "-L", fmt.Sprintf("10.97.0.%d", i+1), "-p", port, "-D", "600")
	}
	// Both have sent so much that their rates have converged; then the bytes of as much again count.
	sent := func() (bytes [2]float64) {
		for i := range bytes {
			bytes[i] = float64(s.port(fmt.Sprintf("sender%d", i)).OutBytes)
		}
		return bytes
	}
	past := func(from [2]float64, more float64) (now [2]float64) {
		await.Eventually(t, "both senders send", func() bool {
			now = sent()
			return now[0]+now[1] > from[0]+from[1]+more && now[0] > from[0] && now[1] > from[1]
		})
		return now
	}
	first := past([2]float64{}, 300e6)
	// They come to share fairly: where other programs keep the processors, one of them may be held up for a while.
	for end := time.Now().Add(await.Limit); ; {
		last := past(first, 600e6)
		x, y := last[0]-first[0], last[1]-first[1]
		jain := (x + y) * (x + y) / (2 * (x*x + y*y))
		t.Logf("live: Jain %.4f, %.0f and %.0f MB; simulated: %.4f", jain, x/1e6, y/1e6, simulated.Summary.Jain)
		if math.Abs(jain-simulated.Summary.Jain) <= 0.1 {
			break
		}
		if time.Now().After(end) {
			t.Errorf("within %v never as fair as simulated", await.Limit)
			break
		}
		first = last
	}
	if p := s.port("switch[3]"); p.Marked == 0 {
		t.Error("nothing was marked")
	}
}

// A running switch is set otherwise by command, under the traffic of drivers: it marks from then on, and no more; a pause storm is told
// of by the process that runs the fabric, with its end.
func TestSwitchIsChangedWhileItRuns(t *testing.T) {
	systemtest.Mark(t)
	s := runSwitches(t, `{"topology": {"kind": "links", "hosts": ["a", "b"], "switches": ["s"], "links": [
		{"from": "a", "to": "s", "rate": "500Mb/s"}, {"from": "b", "to": "s", "rate": "2Gb/s"}]}, "switch": {"pfc": [0]}}`, "--timing")
	a, b := s.driver("a", "10.94.0.1/24,fabric=a,linkmtu=4200"), s.driver("b", "10.94.0.2/24,fabric=b,linkmtu=4200")
	a.dcqcn(t, "a") // its packets, and those of b, may be marked
	b.dcqcn(t, "b")
	a.spawn(t, "nd_write_bw", "-S", "10.94.0.1").until(t, "serving at")
	b.spawn(t, "nd_write_bw", "-C", "10.94.0.1", "-L", "10.94.0.2", "-D", "600")
	sent := func(more uint64) {
		t.Helper()
		before := s.port("s[1]").OutBytes
		await.Eventually(t, "bytes are sent", func() bool { return s.port("s[1]").OutBytes >= before+more })
	}
	sent(10e6)
	if p := s.port("s[1]"); p.Marked != 0 {
		t.Errorf("%d frames are marked before", p.Marked)
	}
	s.do("set", "s", "all", "kmin=20KB", "kmax=100KB", "pmax=10%")
	await.Eventually(t, "frames are marked", func() bool { return s.port("s[1]").Marked > 0 })
	if out := s.do("settings", "s[1]"); !strings.Contains(out, "marks from 20 KB on, 10% at 100 KB, all above") {
		t.Errorf("settings: %s", out)
	}
	s.do("set", "s", "all", "kmin=0", "kmax=0", "pmax=0")
	marked := s.port("s[1]").Marked
	sent(10e6)
	if p := s.port("s[1]"); p.Marked != marked {
		t.Errorf("%d frames are marked after", p.Marked-marked)
	}
	s.do("storm", "a", "0")
	s.run.until(t, "storm: s[1] priority 0 is paused for long")
	s.do("storm", "a", "none")
	s.run.until(t, "storm: s[1] priority 0 goes on")
	if out := s.do("incidents"); !strings.Contains(out, "s[1] priority 0 is paused for long") {
		t.Errorf("incidents: %s", out)
	}
	for _, p := range []place{a, b} { // both drivers have it in their logs
		await.Eventually(t, "events", func() bool {
			out := p.ok(t, "events", "list")
			return strings.Contains(out, s.name+": storm: s[1] priority 0 is paused for long.") &&
				strings.Contains(out, s.name+": storm: s[1] priority 0 goes on.")
		})
	}
}

// Three drivers write over switches in a ring to the one two links on. When a command makes routes a circle, lossless buffers wait for
// each other: the watch names them, the drivers' logs have it, and nothing moves until a cable is out for a moment.
func TestDeadlockOfDrivers(t *testing.T) {
	systemtest.Mark(t, systemtest.Alone)
	s := runSwitches(t, `{"topology": {"kind": "links", "hosts": ["h0", "h1", "h2"], "switches": ["s0", "s1", "s2"], "links": [
		{"from": "h0", "to": "s0"}, {"from": "h1", "to": "s1"}, {"from": "h2", "to": "s2"},
		{"from": "s0", "to": "s1"}, {"from": "s1", "to": "s2"}, {"from": "s2", "to": "s0"}], "rate": "200Mb/s"},
		"switch": {"pfc": [0], "xoff": "30KB"}, "nic": {"pfc": [0]}}`, "--timing")
	var drivers []place
	for i := range 3 {
		drivers = append(drivers, s.driver(fmt.Sprintf("h%d", i), fmt.Sprintf("10.93.0.%d/24,fabric=h%d,linkmtu=4200", i+1, i)))
	}
	write := func() (all []*process) {
		t.Helper()
		for i, p := range drivers {
			server := p.spawn(t, "nd_write_bw", "-S", fmt.Sprintf("10.93.0.%d", i+1))
			server.until(t, "serving at")
			all = append(all, server)
		}
		for i, p := range drivers {
			all = append(all, p.spawn(t, "nd_write_bw", "-C", fmt.Sprintf("10.93.0.%d", (i+2)%3+1), "-L", fmt.Sprintf("10.93.0.%d", i+1), "-D", "600"))
		}
		return all
	}
	writing := write()
	moves := func() {
		t.Helper()
		for i := range 3 {
			name := fmt.Sprintf("s%d[1]", i)
			before := s.port(name).OutBytes
			await.Eventually(t, "bytes arrive at "+name, func() bool { return s.port(name).OutBytes > before+100_000 })
		}
	}
	moves()
	const cycle = "s0[2] priority 0, s1[3] priority 0, s2[3] priority 0"
	s.do("circle", "s0,s1,s2")
	s.run.until(t, "deadlock: these wait for each other: "+cycle)
	s.do("circle", "none")
	s.do("flap", "s0[2]", "20ms")
	s.run.until(t, "deadlock: "+cycle+" go on")
	for _, x := range writing { // connections may have retried for too long, so others show that the links carry them
		_ = x.cmd.Process.Signal(syscall.SIGTERM)
	}
	for _, x := range writing {
		x.wait(t)
	}
	write()
	moves()
	for _, p := range drivers {
		await.Eventually(t, "events", func() bool {
			return strings.Contains(p.ok(t, "events", "list"), s.name+": deadlock: these wait for each other: "+cycle)
		})
	}
}
