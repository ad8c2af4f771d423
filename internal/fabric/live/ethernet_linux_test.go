package live

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/fabric"
	"github.com/softvpi/softvpi/internal/fabric/ethernet"
	"github.com/softvpi/softvpi/internal/fabric/lan"
	"github.com/softvpi/softvpi/internal/fabric/topology"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/link/cable"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/wire/eth"
	"golang.org/x/sys/unix"
)

// newSwitch returns a ground with an Ethernet switch and hosts h0, h1... of 10 Gb/s.
func newSwitch(t testing.TB, hosts int, timing bool) *ground {
	t.Helper()
	cfg := lan.Config{Timing: timing}
	s := lan.Node{Name: "s"}
	for i := range hosts {
		cfg.Nodes = append(cfg.Nodes, lan.Node{Name: fmt.Sprintf("h%d", i), Station: &ethernet.StationConfig{
			Wire: ethernet.PortConfig{Rate: 10e9}, Buffer: 16 << 20}})
		s.Ports = append(s.Ports, ethernet.PortConfig{Rate: 10e9})
		cfg.Links = append(cfg.Links, lan.Link{A: ethernet.End{Node: i}, B: ethernet.End{Node: hosts, Port: i}})
	}
	cfg.Nodes = append(cfg.Nodes, s)
	n, err := lan.New(0, cfg)
	if err != nil {
		t.Fatal(err)
	}
	g := &ground{t, New(fabric.New(new(topology.Topology), func() uint64 { return 1 << 63 }), Options{Timing: timing, Ethernet: n})}
	t.Cleanup(func() { g.Close() })
	return g
}

// stationOf returns the station of a host's adapter.
func stationOf(i int) link.Station {
	return link.Station{MAC: [6]byte{2, 0, 0, 0, 0, byte(i)},
		Prefixes: []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}), 24)}}
}

// ethernetAt returns an Ethernet adapter's link as in another process, and the channel of its news.
func ethernetAt(t testing.TB, cfg cable.Config, i int) (*cable.Ethernet, chan struct{}) {
	t.Helper()
	return ethernetSized(t, cfg, i, 0)
}

// ethernetSized is ethernetAt with an MTU.
func ethernetSized(t testing.TB, cfg cable.Config, i, mtu int) (*cable.Ethernet, chan struct{}) {
	t.Helper()
	news := make(chan struct{}, 1)
	cfg.Node, cfg.Program = fmt.Sprintf("h%d", i), "test"
	cfg.Notify = func() {
		select {
		case news <- struct{}{}:
		default:
		}
	}
	l, err := cable.OpenEthernet(cable.EthernetConfig{Config: cfg, MTU: mtu, Stations: []link.Station{stationOf(i)}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l, news
}

func wired(l *cable.Ethernet) func() bool { return func() bool { return l.WireState().Up } }

// numbered returns a frame of a length with a number, from one host to another.
func numbered(from, to, n int, number uint32) frame.Out {
	b := make([]byte, n)
	b[0], b[5], b[6], b[11] = 2, byte(to), 2, byte(from)
	binary.BigEndian.PutUint16(b[12:], 0x88b5)
	binary.BigEndian.PutUint32(b[14:], number)
	var o frame.Out
	o.Reset(nil)
	o.Payload = b
	return o
}

// passes sends frames of many lengths from one adapter to another, no more at a time than the port's queue takes, and checks that all
// arrive unchanged and in order. Each waits for the other.
func passes(t *testing.T, a, b *cable.Ethernet, from, to, count int) {
	t.Helper()
	in := make([]frame.In, 64)
	sent, got := 0, 0
	for late := time.Now().Add(await.Limit); got < count; {
		for range 64 {
			if sent < count && sent-got < 200 {
				o := numbered(from, to, 60+sent*97%1400, uint32(sent))
				n, err := a.Send([]frame.Out{o})
				if err != nil {
					t.Fatal(err)
				}
				sent += n
			}
		}
		a.Receive(in)
		n, err := b.Receive(in)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range in[:n] {
			if binary.BigEndian.Uint16(f.Data[12:]) != 0x88b5 {
				continue // ARP
			}
			if k := binary.BigEndian.Uint32(f.Data[14:]); int(k) != got || len(f.Data) != 60+got*97%1400 {
				t.Fatalf("frame %d of %d bytes, want number %d", k, len(f.Data), got)
			}
			got++
		}
		if n == 0 {
			time.Sleep(20 * time.Microsecond)
			if time.Now().After(late) {
				t.Fatalf("%d of %d frames were sent, %d have arrived", sent, count, got)
			}
		}
	}
}

// Frames cross an Ethernet switch between processes, over memory and over UDP. Stations find each other, and know when the fabric goes.
func TestEthernetCrossesProcesses(t *testing.T) {
	for _, timing := range []bool{false, true} {
		for _, over := range []string{"memory", "UDP"} {
			t.Run(fmt.Sprintf("%s, timing %v", over, timing), func(t *testing.T) {
				g := newSwitch(t, 2, timing)
				var cfg cable.Config
				var stop func()
				if over == "UDP" {
					var at netip.AddrPort
					at, stop = g.overUDP(anyPort(), nil)
					cfg.UDP = cable.Scheme + at.String()
				} else {
					cfg.Socket, stop = g.outside("")
				}
				a, newsA := ethernetAt(t, cfg, 0)
				b, newsB := ethernetAt(t, cfg, 1)
				until(t, newsA, wired(a))
				until(t, newsB, wired(b))
				if s := a.WireState().Speed; timing && s != 10e9 || !timing && s != 0 {
					t.Errorf("the wire's speed is %d", s)
				}
				// Each is heard once, so that nothing is flooded.
				for i, l := range []*cable.Ethernet{a, b} {
					l.Send([]frame.Out{numbered(i, 99, 60, 0)})
				}
				passes(t, a, b, 0, 1, 3000)
				passes(t, b, a, 1, 0, 3000)
				resolves(t, a, b)
				stop()
				until(t, newsA, func() bool { return !wired(a)() })
			})
		}
	}
}

// resolves sends a packet to an address whose MAC is not known: ARP finds it through the switch.
func resolves(t *testing.T, a, b *cable.Ethernet) {
	t.Helper()
	r := frame.Route{Src: netip.AddrFrom4([4]byte{10, 0, 0, 0}), Dst: netip.AddrFrom4([4]byte{10, 0, 0, 1})}
	if err := a.Prepare(&r); err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	in := make([]frame.In, 8)
	var outs [8]link.Unreachable
	o := numbered(0, 77, 60, 7)
	o.Route = &r
	copy(o.Head[frame.HeadRoom-14:], o.Payload[:14])
	o.HeadStart, o.HeadEnd, o.Payload = frame.HeadRoom-14, frame.HeadRoom, o.Payload[14:]
	a.Send([]frame.Out{o})
	await.Eventually(t, "the packet arrives", func() bool {
		for _, l := range []*cable.Ethernet{a, b} {
			l.Errors(outs[:])
		}
		a.Receive(in)
		n, _ := b.Receive(in)
		return n == 1 && eth.MAC(in[0].Data) == stationOf(1).MAC && in[0].Data[17] == 7
	})
}

// A host takes one adapter; nodes of the other kind are refused, and said why.
func TestEthernetRefuses(t *testing.T) {
	g := newSwitch(t, 1, false)
	socket, _ := g.outside("")
	a, news := ethernetAt(t, cable.Config{Socket: socket}, 0)
	until(t, news, wired(a))
	for node, want := range map[string]string{
		"h0": `host "h0": an adapter is already plugged in there`,
		"":   "all hosts of the fabric are plugged in: an adapter is already plugged in there",
		"s":  `node "s": no host of the fabric`,
	} {
		_, err := cable.OpenEthernet(cable.EthernetConfig{Config: cable.Config{Socket: socket, Hello: cable.Hello{Node: node}}})
		var refused *cable.RefusedError
		if !errors.As(err, &refused) || refused.Why != want {
			t.Errorf("%q: %v, want %s", node, err, want)
		}
	}
	if _, err := cable.Open(cable.Config{Socket: socket}); err == nil {
		t.Error("an InfiniBand adapter is let in")
	}
	ib := newGround(t, 1, Options{})
	socket, _ = ib.outside("")
	var refused *cable.RefusedError
	if _, err := cable.OpenEthernet(cable.EthernetConfig{Config: cable.Config{Socket: socket}}); !errors.As(err, &refused) ||
		refused.Why != "the fabric has no Ethernet nodes" {
		t.Errorf("on a fabric without Ethernet: %v", err)
	}
}

// BenchmarkEthernet is a frame from ring to ring through a switch. What is on its way is limited, so that nothing is lost.
func BenchmarkEthernet(b *testing.B) {
	for _, size := range []int{64, 1024, 4096} {
		b.Run(sizeName(size), func(b *testing.B) {
			g := newSwitch(b, 2, false)
			socket, _ := g.outside("")
			var links [2]*cable.Ethernet
			for i := range links {
				l, news := ethernetSized(b, cable.Config{Socket: socket}, i, cable.MostMTU)
				until(b, news, wired(l))
				l.Send([]frame.Out{numbered(i, 99, 60, 0)})
				links[i] = l
			}
			frames, in := make([]frame.Out, 32), make([]frame.In, 64)
			for i := range frames {
				frames[i] = numbered(0, 1, size, uint32(i))
			}
			b.SetBytes(int64(size))
			b.ReportAllocs()
			b.ResetTimer()
			for sent, got := 0, 0; got < b.N; {
				if sent < b.N && sent-got < 4*len(frames) {
					n, err := links[0].Send(frames[:min(len(frames), b.N-sent)])
					if err != nil {
						b.Fatal(err)
					}
					sent += n
				}
				n, err := links[1].Receive(in)
				if err != nil {
					b.Fatal(err)
				}
				if n == 0 {
					_, _ = unix.Poll([]unix.PollFd{{Fd: int32(links[1].Descriptors()[0]), Events: unix.POLLIN}}, 1)
				}
				for _, f := range in[:n] {
					if binary.BigEndian.Uint16(f.Data[12:]) == 0x88b5 && f.Data[0] == 2 {
						got++
					}
				}
			}
		})
	}
}

// A fabric tells adapters over UDP of its incidents, and of their ends; those that come later of what was before; and those that have not
// asked of nothing.
func TestEthernetTellsOfIncidentsOverUDP(t *testing.T) {
	g := newSwitch(t, 3, true)
	at, _ := g.overUDP(anyPort(), nil)
	plug := func(i int) (*cable.Ethernet, chan cable.Incident) {
		all := make(chan cable.Incident, 1000)
		l, news := ethernetAt(t, cable.Config{UDP: cable.Scheme + at.String(), Incident: func(x cable.Incident) { all <- x }}, i)
		until(t, news, wired(l))
		return l, all
	}
	a, toA := plug(0)
	b, toB := plug(1)
	deaf, news := ethernetAt(t, cable.Config{UDP: cable.Scheme + at.String()}, 2)
	until(t, news, wired(deaf))
	in := make([]frame.In, 64)
	// hears sends frames from a to b, which wait, until what an adapter is told is so. A machine that stands still may end a storm, and
	// another begins.
	hears := func(told chan cable.Incident, what string, is func(cable.Incident) bool) {
		t.Helper()
		await.Eventually(t, what, func() bool {
			_, _ = a.Send([]frame.Out{numbered(0, 1, 100, 0)})
			for _, l := range []*cable.Ethernet{a, b, deaf} {
				_, _ = l.Receive(in)
			}
			select {
			case x := <-told:
				if x.Number == 0 || x.Kind != "storm" || !strings.HasPrefix(x.Text, "s[2] priority 0 ") || x.Fabric != g.id {
					t.Errorf("%s: told of %+v", what, x)
				}
				return is(x)
			default:
				return false
			}
		})
	}
	begun, over := func(x cable.Incident) bool { return !x.Over }, func(x cable.Incident) bool { return x.Over }
	g.orders(t, "pfc s 0")
	g.orders(t, "storm h1 0")
	hears(toA, "a storm", begun)
	hears(toB, "a storm", begun)
	g.orders(t, "storm h1 none")
	hears(toA, "its end", over)
	hears(toB, "its end", over)
	a.Close()
	a, toA = plug(0)
	hears(toA, "what was before", func(x cable.Incident) bool { return x.Number == 1 && !x.Over })
	hears(toA, "its end", over)
	await.Eventually(t, "the wire of the adapter that has not asked", wired(deaf))
}

// orders executes a command of the Ethernet.
func (g *ground) orders(t *testing.T, line string) {
	t.Helper()
	g.Lock()
	defer g.Unlock()
	if _, _, err := g.Command(strings.Fields(line)); err != nil {
		t.Fatal(line, err)
	}
}
