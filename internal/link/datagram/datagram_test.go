//go:build !windows

package datagram

import (
	"errors"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/encap"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/link/station"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/wire/ib"
)

// forms runs a test over both kinds of sockets.
func forms(t *testing.T, test func(t *testing.T, cfg Config)) {
	for name, cfg := range map[string]Config{"system calls": {}, "portable": {Portable: true}} {
		if runtime.GOOS != "linux" && !cfg.Portable {
			continue
		}
		t.Run(name, func(t *testing.T) { test(t, cfg) })
	}
}

// paths returns two paths for sockets.
func paths(t *testing.T) (a, b string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "dg") // t.TempDir may be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return filepath.Join(dir, "a"), filepath.Join(dir, "b")
}

func mustOpen(t *testing.T, cfg Config, local, remote string, stations ...link.Station) link.Link {
	t.Helper()
	cfg.Local, cfg.Remote, cfg.Stations = local, remote, stations
	l, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func stationOf(n byte, vlan uint16, prefixes ...string) link.Station {
	s := link.Station{MAC: [6]byte{2, 0, 0, 0, 0, n}, VLAN: vlan}
	for _, p := range prefixes {
		s.Prefixes = append(s.Prefixes, netip.MustParsePrefix(p))
	}
	return s
}

// sealed are n packets of RoCE v2 for a route, with payloads of size bytes.
func sealed(t *testing.T, l link.Link, r *frame.Route, n, size int) []frame.Out {
	t.Helper()
	e, err := encap.New(encap.RoCEv2, []netip.Addr{r.Src}, l.Capabilities(), 0)
	if err != nil {
		t.Fatal(err)
	}
	out := make([]frame.Out, n)
	for i := range out {
		o := &out[i]
		o.Reset(r)
		o.HeadEnd += ib.BTHLen
		h := ib.BTH(o.Head[frame.HeadRoom:o.HeadEnd])
		h.SetDestQP(0x2a)
		h.SetPSN(ib.PSN(i))
		o.Payload = make([]byte, size)
	}
	e.Seal(out)
	return out
}

// pass sends packets and receives them on another link until all have come, and returns the last.
func pass(t *testing.T, from, to link.Link, out []frame.Out) (last frame.In) {
	t.Helper()
	in, none := make([]frame.In, 32), make([]link.Unreachable, 4)
	got, sent := 0, 0
	await.Eventually(t, "all packets arrive", func() bool {
		n, err := from.Send(out[sent:])
		if err != nil {
			t.Fatal(err)
		}
		sent += n
		if n, err = to.Receive(in); err != nil {
			t.Fatal(err)
		}
		for i := range in[:n] {
			if !in[i].Raw {
				t.Fatal("a frame is not marked as whole")
			}
			last = in[i]
		}
		got += n
		if _, err := from.Receive(in); err != nil { // answers of neighbours
			t.Fatal(err)
		}
		from.Errors(none)
		to.Errors(none)
		return got >= len(out)
	})
	return last
}

// TestLink_CarriesRoCE: packets of RoCE v2 pass both ways between stations that look for each other, over IPv4 and IPv6, untagged
// and tagged.
func TestLink_CarriesRoCE(t *testing.T) {
	forms(t, func(t *testing.T, cfg Config) {
		cfg.MTU = 4200
		for _, vlan := range []uint16{0, 100} {
			pa, pb := paths(t)
			a := mustOpen(t, cfg, pa, pb, stationOf(1, vlan, "10.0.0.1/24", "fd00::1/64"))
			b := mustOpen(t, cfg, pb, pa, stationOf(2, vlan, "10.0.0.2/24", "fd00::2/64"))
			for _, addrs := range [][2]string{{"10.0.0.1", "10.0.0.2"}, {"fd00::1", "fd00::2"}} {
				r := &frame.Route{Src: netip.MustParseAddr(addrs[0]), Dst: netip.MustParseAddr(addrs[1])}
				if err := a.Prepare(r); err != nil {
					t.Fatal(err)
				}
				pass(t, a, b, sealed(t, a, r, 3, 256)) // before the neighbour is known
				last := pass(t, a, b, sealed(t, a, r, 200, 4096))
				e, err := encap.New(encap.RoCEv2, []netip.Addr{r.Dst}, b.Capabilities(), 0)
				if err != nil {
					t.Fatal(err)
				}
				if in := []frame.In{last}; e.Open(in) != 1 || in[0].Src != r.Src || ib.BTH(in[0].Data).PSN() != 199 {
					t.Errorf("the last packet is %+v: %+v", last, e.Counters())
				}
				back := &frame.Route{Src: r.Dst, Dst: r.Src}
				if err := b.Prepare(back); err != nil {
					t.Fatal(err)
				}
				pass(t, b, a, sealed(t, b, back, 200, 64))
			}
			sa, sb := a.Stats(), b.Stats()
			if sa.SentPackets != 406 || sb.ReceivedPackets != 406 || sa.SentBytes != sb.ReceivedBytes || sa.SendErrors != 0 {
				t.Errorf("sent %+v\nreceived %+v", sa, sb)
			}
		}
	})
}

// TestLink_OtherSideComesAndGoes: what is sent while nobody is there is lost and counted, and after the other side has been
// started again packets pass again.
func TestLink_OtherSideComesAndGoes(t *testing.T) {
	forms(t, func(t *testing.T, cfg Config) {
		pa, pb := paths(t)
		a := mustOpen(t, cfg, pa, pb, stationOf(1, 0, "10.0.0.1/24"))
		r := &frame.Route{Dst: netip.MustParseAddr("239.0.0.1")}
		if err := a.Prepare(r); err != nil {
			t.Fatal(err)
		}
		for i := range 2 {
			if n, err := a.Send(sealed(t, a, r, 5, 64)); n != 5 || err != nil {
				t.Fatalf("%d of 5 packets are accepted, %v", n, err)
			}
			if s := a.Stats(); s.SendErrors != uint64(5*(i+1)) {
				t.Errorf("%d are lost, want 5", s.SendErrors)
			}
			b := mustOpen(t, cfg, pb, pa, stationOf(2, 0, "10.0.0.2/24"))
			if err := b.Capabilities().Multicaster.Join(r.Dst); err != nil {
				t.Fatal(err)
			}
			pass(t, a, b, sealed(t, a, r, 5, 64))
			if err := b.Close(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestSend_OtherSideTakesNothing: Send is short while the other side's queue is full, and does not stay so forever.
func TestSend_OtherSideTakesNothing(t *testing.T) {
	forms(t, func(t *testing.T, cfg Config) {
		if cfg.Portable {
			t.Skip("it reads for itself")
		}
		pa, pb := paths(t)
		a := mustOpen(t, cfg, pa, pb, stationOf(1, 0, "10.0.0.1/24"))
		mustOpen(t, cfg, pb, pa)
		r := &frame.Route{Dst: netip.MustParseAddr("239.0.0.1")}
		if err := a.Prepare(r); err != nil {
			t.Fatal(err)
		}
		out := sealed(t, a, r, 2000, 64)
		n, err := a.Send(out)
		if n == len(out) || err != nil || a.Stats().SendBlocked == 0 {
			t.Fatalf("%d of %d are accepted, %v", n, len(out), err)
		}
		await.Eventually(t, "what cannot be sent is lost", func() bool {
			n, err := a.Send(out)
			return n == len(out) && err == nil
		})
	})
}

// TestReceive_TooLong: frames longer than the MTU are counted and not handed up.
func TestReceive_TooLong(t *testing.T) {
	forms(t, func(t *testing.T, cfg Config) {
		pa, pb := paths(t)
		long := cfg
		long.MTU = 4200
		a := mustOpen(t, long, pa, pb, stationOf(1, 0, "10.0.0.1/24"))
		b := mustOpen(t, cfg, pb, pa, stationOf(2, 0, "10.0.0.2/24"))
		r := &frame.Route{Dst: netip.MustParseAddr("239.0.0.1")}
		if err := errors.Join(a.Prepare(r), b.Capabilities().Multicaster.Join(r.Dst)); err != nil {
			t.Fatal(err)
		}
		if n, err := a.Send(sealed(t, a, r, 1, 4096)); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		pass(t, a, b, sealed(t, a, r, 1, 64))
		if s := b.Stats(); s.ReceiveTruncated != 1 || s.ReceivedPackets != 1 {
			t.Errorf("%+v", s)
		}
	})
}

// TestReceive_TooShort: what is shorter than an Ethernet header is counted and not handed up, and the link goes on.
func TestReceive_TooShort(t *testing.T) {
	forms(t, func(t *testing.T, cfg Config) {
		pa, pb := paths(t)
		b := mustOpen(t, cfg, pb, pa, stationOf(2, 0, "10.0.0.2/24"))
		far, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: pa, Net: "unixgram"})
		if err != nil {
			t.Fatal(err)
		}
		defer far.Close()
		to := stationOf(2, 0).MAC
		for _, n := range []int{1, 13, 14} {
			if _, err := far.WriteTo(append(to[:], make([]byte, 14)...)[:n], &net.UnixAddr{Name: pb, Net: "unixgram"}); err != nil {
				t.Fatal(err)
			}
		}
		in := make([]frame.In, 8)
		await.Eventually(t, "the whole header is handed up", func() bool {
			n, err := b.Receive(in)
			return n == 1 && len(in[0].Data) == 14 && err == nil
		})
		if s := b.Stats(); s.ReceiveUndersize != 2 || s.ReceivedPackets != 1 || s.ReceiveTruncated != 0 {
			t.Errorf("%+v", s)
		}
	})
}

// TestOpen_Refused: typed errors name the field; a socket that somebody has is not taken, and one that nobody has is.
func TestOpen_Refused(t *testing.T) {
	forms(t, func(t *testing.T, cfg Config) {
		pa, pb := paths(t)
		for field, c := range map[string]Config{
			"Local": {Remote: pb}, "Remote": {Local: pa, Remote: strings.Repeat("x", 108)}, "MTU": {Local: pa, Remote: pb, MTU: 100},
			"Patience": {Local: pa, Remote: pb, Patience: -1},
			"VLAN":     {Local: pa, Remote: pb, Stations: []link.Station{stationOf(1, 4095)}},
		} {
			c.Portable = cfg.Portable
			var e *station.FieldError
			if _, err := Open(c); !errors.As(err, &e) || e.Field != field {
				t.Errorf("%v, want an error about %s", err, field)
			}
		}
		a := mustOpen(t, cfg, pa, pb)
		cfg.Local, cfg.Remote = pa, pb
		if _, err := Open(cfg); !errors.Is(err, fs.ErrExist) {
			t.Errorf("a socket of another: %v", err)
		}
		if err := errors.Join(a.Close(), a.Close()); err != nil {
			t.Error(err)
		}
		if _, err := os.Lstat(pa); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("after Close the socket is left: %v", err)
		}
		if err := os.WriteFile(pa, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(cfg); !errors.Is(err, fs.ErrExist) {
			t.Errorf("a file: %v", err)
		}
		_ = os.Remove(pa)
		// A socket of a process that was killed stays as a file.
		left, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: pb, Net: "unixgram"})
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(os.Rename(pb, pa), left.Close()); err != nil {
			t.Fatal(err)
		}
		mustOpen(t, cfg, pa, pb)
	})
}

// TestClose_EndsEverything: after Close there is nothing to be had from a link.
func TestClose_EndsEverything(t *testing.T) {
	forms(t, func(t *testing.T, cfg Config) {
		pa, pb := paths(t)
		l := mustOpen(t, cfg, pa, pb, stationOf(1, 0, "10.0.0.1/24"))
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		c := l.Capabilities()
		_, sendErr := l.Send(nil)
		_, receiveErr := l.Receive(nil)
		for what, err := range map[string]error{
			"Send": sendErr, "Receive": receiveErr, "Prepare": l.Prepare(&frame.Route{}), "SetStation": c.Stations.SetStation(link.Station{}),
			"Resolve": c.Resolver.Resolve(t.Context(), netip.MustParseAddr("10.0.0.2")), "Join": c.Multicaster.Join(netip.Addr{}),
		} {
			if !errors.Is(err, net.ErrClosed) {
				t.Errorf("%s: %v, want %v", what, err, net.ErrClosed)
			}
		}
	})
}

// TestSendReceive_NoAllocation: the data path allocates nothing.
func TestSendReceive_NoAllocation(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("package net allocates")
	}
	pa, pb := paths(t)
	a := mustOpen(t, Config{}, pa, pb, stationOf(1, 0, "10.0.0.1/24"))
	b := mustOpen(t, Config{}, pb, pa, stationOf(2, 0, "10.0.0.2/24"))
	r := &frame.Route{Dst: netip.MustParseAddr("10.0.0.2")}
	if err := a.Prepare(r); err != nil {
		t.Fatal(err)
	}
	pass(t, a, b, sealed(t, a, r, 3, 64))
	out, in := sealed(t, a, r, 8, 1024), make([]frame.In, 32)
	if n := testing.AllocsPerRun(100, func() {
		_, _ = a.Send(out)
		_, _ = b.Receive(in)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestResolve_BesideTheOwner: others may wait for a neighbour while the owner of the link drives it, and Close ends their wait.
func TestResolve_BesideTheOwner(t *testing.T) {
	forms(t, func(t *testing.T, cfg Config) {
		pa, pb := paths(t)
		a := mustOpen(t, cfg, pa, pb, stationOf(1, 0, "10.0.0.1/24", "fd00::1/64"))
		b := mustOpen(t, cfg, pb, pa, stationOf(2, 0, "10.0.0.2/24", "fd00::2/64"))
		found, ended := make(chan error, 4), make(chan error)
		for _, dst := range []string{"10.0.0.2", "fd00::2", "10.0.0.2", "fd00::2"} {
			go func() { found <- a.Capabilities().Resolver.Resolve(t.Context(), netip.MustParseAddr(dst)) }()
		}
		in, none := make([]frame.In, 32), make([]link.Unreachable, 4)
		got := 0
		await.Eventually(t, "the neighbours are found", func() bool {
			for _, l := range []link.Link{a, b} {
				l.Errors(none)
				if _, err := l.Receive(in); err != nil {
					t.Fatal(err)
				}
			}
			select {
			case err := <-found:
				if got++; err != nil {
					t.Error(err)
				}
			default:
			}
			return got == 4
		})
		// Whether it waits already or not, it ends so; an answer would be given up after three seconds.
		go func() { ended <- a.Capabilities().Resolver.Resolve(t.Context(), netip.MustParseAddr("10.0.0.3")) }()
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
		if err := <-ended; !errors.Is(err, net.ErrClosed) {
			t.Errorf("%v, want %v", err, net.ErrClosed)
		}
	})
}

// TestWireState: a link has a carrier while somebody has the other side's socket.
func TestWireState(t *testing.T) {
	forms(t, func(t *testing.T, cfg Config) {
		a, b := paths(t)
		l := mustOpen(t, cfg, a, b)
		carrier := l.Capabilities().Carrier
		if carrier.WireState().Up {
			t.Error("there is a carrier, and nobody at the other side")
		}
		for range 2 {
			far := mustOpen(t, cfg, b, a)
			follow := func(up bool) func() bool {
				return func() bool {
					l.Errors(nil)
					return carrier.WireState() == link.State{Up: up}
				}
			}
			await.Eventually(t, "the other side is noticed", follow(true))
			if !far.Capabilities().Carrier.WireState().Up {
				t.Error("the other side has no carrier")
			}
			if err := far.Close(); err != nil {
				t.Fatal(err)
			}
			await.Eventually(t, "its end is noticed", follow(false))
		}
	})
}
