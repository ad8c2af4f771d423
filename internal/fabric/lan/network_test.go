package lan

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/fabric/bridge"
	"github.com/softvpi/softvpi/internal/fabric/ethernet"
	"github.com/softvpi/softvpi/wire/eth"
)

// bench is a network in virtual time.
type bench struct {
	*testing.T
	*Network
	now clock.Time
}

// star returns hosts h0, h1... at a switch s, with rates of their links.
func star(t *testing.T, timing bool, port ethernet.PortConfig, rates ...uint64) *bench {
	t.Helper()
	cfg := Config{Timing: timing}
	for i, r := range rates {
		w := ethernet.PortConfig{Rate: r, Trust: ethernet.TrustDSCP}
		cfg.Nodes = append(cfg.Nodes, Node{Name: fmt.Sprintf("h%d", i), Station: &ethernet.StationConfig{Wire: w, Waiting: 1 << 20}})
	}
	s := Node{Name: "s"}
	for i, r := range rates {
		p := port
		p.Rate, p.Trust = r, ethernet.TrustDSCP
		s.Ports = append(s.Ports, p)
		cfg.Links = append(cfg.Links, Link{ethernet.End{Node: i}, ethernet.End{Node: len(rates), Port: i}})
	}
	cfg.Nodes = append(cfg.Nodes, s)
	seed := uint64(1)
	cfg.Random = func() uint64 { seed = seed*6364136223846793005 + 1442695040888963407; return seed }
	n, err := New(0, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return &bench{t, n, 0}
}

// to lets time pass until a time.
func (b *bench) to(at clock.Time) {
	for b.Network.Deadline() <= at {
		b.now = clock.Time(max(b.now, b.Network.Deadline()))
		b.Advance(b.now)
	}
	b.now = at
	b.Advance(at)
}

func (b *bench) plug(name string) *Jack {
	b.Helper()
	j, err := b.Plug(b.now, name, "test")
	if err != nil {
		b.Fatal(err)
	}
	return j
}

func (b *bench) do(command string) string {
	b.Helper()
	answer, mine, err := b.Command(b.now, strings.Fields(command))
	if !mine || err != nil {
		b.Fatalf("%s: %v, %v", command, mine, err)
	}
	return answer
}

func mac(i int) eth.MAC { return eth.MAC{2, 0, 0, 0, 0, byte(i)} }

// packet returns an IPv4 packet of a length with a DSCP, from one host to another.
func packet(from, to, dscp, n int) []byte {
	b := make([]byte, n)
	copy(b, mac2(to))
	copy(b[6:], mac2(from))
	binary.BigEndian.PutUint16(b[12:], uint16(eth.TypeIPv4))
	b[14], b[15], b[22], b[23] = 0x45, byte(dscp<<2|2), 64, 17
	binary.BigEndian.PutUint16(b[16:], uint16(n-14))
	return b
}

func mac2(i int) []byte { m := mac(i); return m[:] }

// learned lets every host be heard once.
func (b *bench) learned(jacks ...*Jack) {
	for i, j := range jacks {
		j.Transmit(b.now, packet(i, 99, 0, 64))
	}
	b.to(b.now.Add(10 * time.Millisecond))
	for _, j := range jacks {
		b.drain(j)
	}
}

// drain takes what waits at a jack, and returns how many frames and bytes.
func (b *bench) drain(j *Jack) (frames, bytes int) {
	for j.Waiting() > 0 {
		bytes += len(j.Next(b.now))
		frames++
		b.Advance(b.now)
	}
	return frames, bytes
}

// A link with timing carries what its rate says and no more, a slower one behind a faster one too; without timing all at once.
func TestRateOfLinksIsKept(t *testing.T) {
	b := star(t, true, ethernet.PortConfig{}, 4e9, 1e9)
	from, to := b.plug("h0"), b.plug("h1")
	b.learned(from, to)
	began, got := b.now, 0
	p := packet(0, 1, 0, 1500)
	for b.now < began.Add(20*time.Millisecond) {
		for from.Transmit(b.now, p) {
		}
		b.to(b.now.Add(100 * time.Microsecond))
		n, _ := b.drain(to)
		got += n
	}
	want := 1640 // 1 Gb/s x 20 ms / 8 / (1500 + 24)
	if got < want-15 || got > want {
		t.Errorf("%d frames of 1500 bytes in 20 ms over 1 Gb/s, want %d", got, want)
	}
	u := star(t, false, ethernet.PortConfig{}, 4e9, 1e9)
	from, to = u.plug("h0"), u.plug("h1")
	u.learned(from, to)
	for range 100 {
		from.Transmit(u.now, p)
	}
	u.to(u.now.Add(10 * time.Microsecond))
	if n, _ := u.drain(to); n != 100 {
		t.Errorf("%d of 100 frames in 10 us without timing", n)
	}
}

// A host that takes nothing fills its station and then pauses the switch, if its port has PFC: nothing is lost, and all arrives when
// it goes on. Without PFC frames are lost.
func TestAdapterThatDoesNotRead(t *testing.T) {
	for _, lossless := range []uint8{1 << 3, 0} {
		port := ethernet.PortConfig{Lossless: lossless}
		if lossless != 0 {
			port.FlowControl = ethernet.PriorityPause
		}
		b := star(t, true, port, 1e9, 1e9)
		for _, h := range []string{"h0", "h1"} {
			b.do("pfc " + h + map[bool]string{true: " 3", false: " none"}[lossless != 0])
		}
		from, to := b.plug("h0"), b.plug("h1")
		b.learned(from, to)
		p := packet(0, 1, 3<<3, 4000)
		sent := 0
		for range 4000 {
			for from.Transmit(b.now, p) {
				sent++
			}
			b.to(b.now.Add(100 * time.Microsecond))
		}
		got := 0
		for range 8000 {
			n, _ := b.drain(to)
			got += n
			b.to(b.now.Add(100 * time.Microsecond))
		}
		if lost := sent - got; lossless != 0 && (lost != 0 || sent > 9000) || lossless == 0 && lost == 0 {
			t.Errorf("PFC %#x: %d sent, %d lost", lossless, sent, lost)
		}
	}
}

// A cable that is out carries nothing; flap puts it back in. Loss loses. Rates change at once.
func TestFaults(t *testing.T) {
	b := star(t, true, ethernet.PortConfig{}, 1e9, 1e9, 1e9)
	from, to := b.plug("h0"), b.plug("h1")
	b.learned(from, to)
	p := packet(0, 1, 0, 1000)
	passes := func(want bool, when string) {
		t.Helper()
		from.Transmit(b.now, p)
		b.to(b.now.Add(time.Millisecond))
		if n, _ := b.drain(to); (n == 1) != want {
			t.Errorf("%s: %d frames", when, n)
		}
	}
	passes(true, "at first")
	b.do("unlink s[2]")
	if to.State().Up || !from.State().Up {
		t.Error("the cable is out, and the adapter does not know, or the wrong one does")
	}
	passes(false, "with the cable out")
	b.do("relink h1")
	passes(true, "with the cable in again")
	b.do("flap h1 5ms")
	passes(false, "while it flaps")
	b.to(b.now.Add(5 * time.Millisecond))
	passes(true, "after it has flapped")
	b.do("loss h0 100%")
	passes(false, "with all lost")
	b.do("loss h0 0")
	passes(true, "with nothing lost")
	b.do("take h1 none")
	passes(false, "while the host hangs")
	b.do("take h1 all")
	b.to(b.now.Add(time.Millisecond))
	b.drain(to)
	passes(true, "after that")
	b.do("rate h1 2Mb/s")
	passes(false, "at 2 Mb/s")
	if s := to.State().Speed; s != 2e6 {
		t.Errorf("the adapter has a speed of %d", s)
	}
	if s := b.do("port s[2]"); !strings.Contains(s, "s[2] to h1: up, 2 Mb/s") {
		t.Errorf("port: %s", s)
	}
	if s := b.do("macs s"); !strings.Contains(s, "VLAN 1 at s[1]") {
		t.Errorf("macs: %s", s)
	}
	if s := b.State(b.now, ethernet.End{Node: 3, Port: 2}); s.Node != "s" || s.Port != 3 || s.Peer != "h2" || s.Up {
		t.Errorf("state: %+v", s)
	}
}

// A pause storm stops what the other end sends at the priority, and nothing else, until it ends.
func TestPauseStorm(t *testing.T) {
	b := star(t, true, ethernet.PortConfig{FlowControl: ethernet.PriorityPause, Lossless: 1 << 3}, 1e9, 1e9)
	from, to := b.plug("h0"), b.plug("h1")
	b.learned(from, to)
	b.do("storm h1 3")
	b.to(b.now.Add(time.Millisecond))
	from.Transmit(b.now, packet(0, 1, 3<<3, 1000))
	from.Transmit(b.now, packet(0, 1, 0, 600))
	b.to(b.now.Add(50 * time.Millisecond))
	if n, bytes := b.drain(to); n != 1 || bytes != 600 {
		t.Errorf("%d frames of %d bytes pass, want the one that is not paused", n, bytes)
	}
	b.do("storm h1 none")
	b.to(b.now.Add(time.Millisecond))
	if n, bytes := b.drain(to); n != 1 || bytes != 1000 {
		t.Errorf("%d frames of %d bytes after the storm", n, bytes)
	}
}

// A pause that an adapter sends stops the switch; one that the switch sends reaches the adapter.
func TestPausesPass(t *testing.T) {
	b := star(t, true, ethernet.PortConfig{FlowControl: ethernet.PriorityPause, Lossless: 1 << 3}, 1e9, 1e9)
	from, to := b.plug("h0"), b.plug("h1")
	b.learned(from, to)
	pause := eth.Pause{Src: mac(1), PerPriority: true, Enabled: 1 << 3}
	pause.Quanta[3] = 0xffff // 33.5 ms
	to.Transmit(b.now, pause.Append(nil))
	b.to(b.now.Add(time.Millisecond))
	from.Transmit(b.now, packet(0, 1, 3<<3, 1000))
	b.to(b.now.Add(20 * time.Millisecond))
	if n, _ := b.drain(to); n != 0 {
		t.Errorf("%d frames pass a pause", n)
	}
	b.to(b.now.Add(20 * time.Millisecond))
	if n, _ := b.drain(to); n != 1 {
		t.Errorf("%d frames after the pause", n)
	}
	b.do("storm s[1] 3")
	b.to(b.now.Add(time.Millisecond))
	if n, bytes := b.drain(from); n == 0 || bytes != 60*n {
		t.Errorf("the adapter got %d frames of %d bytes, want pauses", n, bytes)
	}
}

// Each host takes one adapter, and a switch none.
func TestPlug(t *testing.T) {
	b := star(t, false, ethernet.PortConfig{}, 1e9, 1e9)
	j := b.plug("")
	if _, err := b.Plug(0, "h0", "x"); !errors.Is(err, ErrTaken) {
		t.Errorf("a second adapter: %v", err)
	}
	for _, name := range []string{"s", "nobody"} {
		if _, err := b.Plug(0, name, "x"); !errors.Is(err, ErrNoHost) {
			t.Errorf("%s: %v", name, err)
		}
	}
	b.plug("")
	if _, err := b.Plug(0, "", "x"); !errors.Is(err, ErrTaken) {
		t.Errorf("a third adapter: %v", err)
	}
	j.Close(0)
	j.Close(0)
	b.plug("h0")
}

// Commands that are wrong say what is allowed.
func TestCommandsRefuse(t *testing.T) {
	b := star(t, false, ethernet.PortConfig{}, 1e9, 1e9)
	for line, want := range map[string]string{
		"unlink s":              `port "s"; allowed: a host, or a switch and a port, such as s[1], up to 2`,
		"unlink s[3]":           `port "s[3]"; allowed:`,
		"loss h0 x":             `loss "x"; allowed: 0% to 100%`,
		"rate h0 4xQDR":         `rate "4xQDR"; allowed: 1Mb/s to 1Tb/s`,
		"rate h0 1Gb/s":         "rates of links are not kept; allowed: a fabric that was started with --timing",
		"take s[1] 1Gb/s":       `node "s[1]" is a switch; allowed: a host`,
		"take h0 fast":          `rate "fast"; allowed: 1Mb/s to 1Tb/s, all or none`,
		"storm h0 8":            `priorities "8"; allowed: 0 to 7, such as 3 or 3,4, or none`,
		"pfc nobody 3":          `node "nobody" is none of the Ethernet`,
		"flap h0 soon":          `time "soon"; allowed: up to 1h, such as 200ms`,
		"macs h0":               `node "h0" is no switch of the Ethernet`,
		"pfc h0":                "pfc has 1 arguments; allowed: pfc PORT|SWITCH 3|none",
		"pfc s 0,1,2,3,4,5,6,7": "",
	} {
		_, _, err := b.Command(0, strings.Fields(line))
		if want == "" && err != nil || want != "" && (err == nil || !strings.HasPrefix(err.Error(), want)) {
			t.Errorf("%s: %v, want %s", line, err, want)
		}
	}
	for _, line := range []string{"reset s", "unlink sw1[7]"} {
		if _, mine, _ := b.Command(0, strings.Fields(line)); mine {
			t.Errorf("%s is taken", line)
		}
	}
}

// leafSpine returns hosts h0 to h3 at leaves l0 and l1, each with a link to each spine.
func leafSpine(t *testing.T, spines int) *bench {
	t.Helper()
	cfg := Config{Timing: true}
	for i := range 4 {
		cfg.Nodes = append(cfg.Nodes, Node{Name: fmt.Sprintf("h%d", i), Station: &ethernet.StationConfig{
			Wire: ethernet.PortConfig{Rate: 10e9}, Waiting: 1 << 20}})
	}
	between := ethernet.PortConfig{Rate: 10e9, PVID: 1, Tagged: bridge.AllVLANs()}
	for l := range 2 {
		n := Node{Name: fmt.Sprintf("l%d", l), Ports: []ethernet.PortConfig{{Rate: 10e9}, {Rate: 10e9}}}
		for s := range spines {
			n.Ports = append(n.Ports, between)
			cfg.Links = append(cfg.Links, Link{ethernet.End{Node: 4 + l, Port: 2 + s}, ethernet.End{Node: 6 + s, Port: l}})
		}
		cfg.Nodes = append(cfg.Nodes, n)
		for h := range 2 {
			cfg.Links = append(cfg.Links, Link{ethernet.End{Node: 2*l + h}, ethernet.End{Node: 4 + l, Port: h}})
		}
	}
	for s := range spines {
		cfg.Nodes = append(cfg.Nodes, Node{Name: fmt.Sprintf("s%d", s), Ports: []ethernet.PortConfig{between, between}})
	}
	n, err := New(0, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return &bench{t, n, 0}
}

// Over leaves and spines what goes everywhere arrives once at each host, though links are circles; flows are spread over the spines,
// each in order over one; and when a spine goes, or comes back, all flows find their way.
func TestCirclesOfSwitches(t *testing.T) {
	b := leafSpine(t, 2)
	var jacks []*Jack
	for i := range 4 {
		jacks = append(jacks, b.plug(fmt.Sprintf("h%d", i)))
	}
	jacks[0].Transmit(b.now, packet(0, 99, 0, 64))
	b.to(b.now.Add(time.Millisecond))
	for i, j := range jacks[1:] {
		if n, _ := b.drain(j); n != 1 {
			t.Errorf("h%d got %d copies of what goes everywhere", i+1, n)
		}
	}
	b.learned(jacks...)
	flow := func(port int) []byte {
		p := packet(0, 2, 0, 200)
		binary.BigEndian.PutUint16(p[34:], uint16(port))
		return p
	}
	passes := func(when string, spines ...string) {
		t.Helper()
		var before [2]uint64
		for i := range 2 {
			before[i] = b.State(b.now, ethernet.End{Node: 6 + i}).InFrames
		}
		for port := range 64 {
			jacks[0].Transmit(b.now, flow(port))
		}
		b.to(b.now.Add(time.Millisecond))
		if n, _ := b.drain(jacks[2]); n != 64 {
			t.Errorf("%s: %d of 64 frames", when, n)
		}
		for i := range 2 {
			used := b.State(b.now, ethernet.End{Node: 6 + i}).InFrames - before[i]
			want := slices.Contains(spines, fmt.Sprintf("s%d", i))
			if want && used < 64/uint64(len(spines))/2 || !want && used != 0 {
				t.Errorf("%s: %d frames over s%d", when, used, i)
			}
		}
	}
	passes("at first", "s0", "s1")
	b.do("unlink s0[2]")
	passes("with a link of s0 out", "s1")
	b.do("unlink s1[1]")
	jacks[0].Transmit(b.now, flow(1))
	b.to(b.now.Add(time.Millisecond))
	if n, _ := b.drain(jacks[2]); n != 0 {
		t.Errorf("%d frames without a way", n)
	}
	b.do("relink s1[1]")
	b.do("relink s0[2]")
	passes("with all links in again", "s0", "s1")
	if s := b.do("macs l0"); strings.Count(s, "VLAN 1 at l0[") != 4 {
		t.Errorf("macs: %s", s)
	}
	if s := b.do("macs s1"); strings.Count(s, "VLAN 1 at s1[") != 4 {
		t.Errorf("macs: %s", s)
	}
}

// Addresses of a port are limited, those that are too old make room, and one that moves is followed.
func TestAddressesOfADomain(t *testing.T) {
	b := leafSpine(t, 1)
	h0, h2 := b.plug("h0"), b.plug("h2")
	for i := range 300 {
		p := packet(0, 99, 0, 64)
		p[9], p[10] = byte(i>>8), byte(i)
		h0.Transmit(b.now, p)
		b.to(b.now.Add(time.Millisecond))
		b.drain(h2)
	}
	if n := strings.Count(b.do("macs l0"), "\n"); n != ethernet.DefaultEntries {
		t.Errorf("%d addresses of a port, want %d", n, ethernet.DefaultEntries)
	}
	b.to(b.now.Add(400 * time.Second))
	h0.Transmit(b.now, packet(7, 99, 0, 64))
	b.to(b.now.Add(time.Millisecond))
	if s := b.do("macs l0"); strings.Count(s, "\n") != 1 || !strings.Contains(s, mac(7).String()) {
		t.Errorf("after 400 s: %s", s)
	}
	h2.Transmit(b.now, packet(7, 99, 0, 64))
	b.to(b.now.Add(time.Millisecond))
	if s := b.do("macs l0"); !strings.Contains(s, mac(7).String()+" VLAN 1 at l0[3]") {
		t.Errorf("after it has moved: %s", s)
	}
	b.do("unlink h2")
	if s := b.do("macs l0"); s != "" {
		t.Errorf("with the cable out: %s", s)
	}
}
