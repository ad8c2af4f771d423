package ibsim

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/netip"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/fabric"
	"github.com/softvpi/softvpi/internal/fabric/live"
	"github.com/softvpi/softvpi/internal/fabric/topology"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/loopback"
	"github.com/softvpi/softvpi/internal/umad"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// world is a server of the small fabric, over UDP at an address of its own.
type world struct {
	*testing.T
	*Server
	at netip.AddrPort
}

func newRack(t testing.TB) *live.Rack {
	t.Helper()
	f, err := os.Open("../fabric/topology/testdata/small.net")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	top, err := topology.ReadNetlist(f)
	if err != nil {
		t.Fatal(err)
	}
	r := live.New(fabric.New(top, rand.New(rand.NewPCG(1, 2)).Uint64), live.Options{})
	t.Cleanup(func() { r.Close() })
	return r
}

// run serves until the test ends, and checks that serving ends without an error.
func run(t *testing.T, s *Server, l Listener) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, l) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("the server ended with %v", err)
		}
	})
}

// attached returns the number of attached programs.
func (w *world) attached() int {
	w.rack.Lock()
	defer w.rack.Unlock()
	return len(w.clients)
}

func newWorld(t *testing.T) *world {
	t.Helper()
	l, err := ListenUDP(netip.AddrPortFrom(loopback.Addr(), loopback.Port()))
	if err != nil {
		t.Skipf("no address of the loopback network: %v", err)
	}
	w := &world{t, NewServer(newRack(t)), l.(*udpListener).at}
	run(t, w.Server, l)
	return w
}

func (w *world) open(node string, isSM bool) (*umad.Port, error) {
	return umad.OpenIbsim(umad.IbsimOptions{Server: w.at.Addr().String(), Port: int(w.at.Port()), Host: node, IsSM: isSM})
}

func (w *world) must(node string, isSM bool) *umad.Port {
	w.Helper()
	p, err := w.open(node, isSM)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { p.Close() })
	return p
}

// smp sends a subnet management packet along a path.
func (w *world) smp(p *umad.Port, s mad.SMP, path ...uint8) (mad.SMP, error) {
	w.Helper()
	if err := s.Direct(path); err != nil {
		w.Fatal(err)
	}
	return w.call(p, s, umad.Address{LID: ib.LIDPermissive})
}

func (w *world) call(p *umad.Port, s mad.SMP, to umad.Address) (mad.SMP, error) {
	w.Helper()
	var b [mad.Len]byte
	s.Append(b[:0])
	a, err := p.Call(context.Background(), to, &b, umad.Timing{Timeout: await.Limit, Tries: 1})
	if err != nil {
		return mad.SMP{}, err
	}
	return mad.ParseSMP(a.MAD[:])
}

// TestClient: a client gets the data of its adapter, and reaches the nodes around it.
func TestClient(t *testing.T) {
	w := newWorld(t)
	p := w.must("hca2 HCA-1", false) // by its description
	d := p.Device()
	if d.Node.PortGUID != 0x2c90300001003 || d.Port.PortState != mad.PortInit || d.PKeys[0] != ib.PKeyDefault || d.Hardware != "a1" ||
		d.Firmware != "1" {
		t.Errorf("the client's device is %+v, want hca1 with its port in INIT", d)
	}
	s, err := w.smp(p, mad.NewSMP(mad.MethodGet, mad.AttrNodeInfo, 0, 0), 1, 7)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := mad.ParseNodeInfo(s.Data[:]); err != nil || n.NodeGUID != 0x2c90200002001 {
		t.Errorf("the switch answers %+v, %v; want its node GUID", n, err)
	}
}

// TestUnansweredComesBack: a request that cannot be delivered comes back at once, because the preload library has no
// timers.
func TestUnansweredComesBack(t *testing.T) {
	w := newWorld(t)
	p := w.must("hca2", false)
	for name, path := range map[string][]uint8{"no link": {1, 5}, "no subnet manager there": {1, 1}} {
		attribute := uint16(mad.AttrNodeInfo)
		if len(path) == 2 && path[1] == 1 {
			attribute = mad.AttrSMInfo
		}
		if _, err := w.smp(p, mad.NewSMP(mad.MethodGet, attribute, 0, 0), path...); !errors.Is(err, umad.ErrTimeout) {
			t.Errorf("%s: %v, want a timeout", name, err)
		}
	}
}

func TestConnectRefuses(t *testing.T) {
	w := newWorld(t)
	if _, err := w.open("nobody", false); err == nil {
		t.Error("a client attached at a node that does not exist")
	}
	first := w.must("hca1", true)
	if _, err := w.open("hca1", true); err == nil {
		t.Error("a second subnet manager attached at one port")
	}
	w.must("hca1", false)
	first.Close()
	await.Eventually(w, "the subnet manager's place is free", func() bool {
		p, err := w.open("hca1", true)
		if err == nil {
			p.Close()
		}
		return err == nil
	})
}

// TestManyClients: more clients can attach than the ten of ibsim.
func TestManyClients(t *testing.T) {
	w := newWorld(t)
	var ports []*umad.Port
	for range 40 {
		ports = append(ports, w.must("hca3", false))
	}
	if got := w.attached(); got != 40 {
		t.Errorf("%d clients are attached, want 40", got)
	}
	for _, p := range ports {
		if _, err := w.smp(p, mad.NewSMP(mad.MethodGet, mad.AttrNodeInfo, 0, 0), 1); err != nil {
			t.Fatal(err)
		}
		p.Close()
	}
	await.Eventually(w, "all are gone", func() bool { return w.attached() == 0 })
}

// TestExchange: SMInfo requests go to the program that is a subnet manager, each with a unique transaction ID, and
// each answer goes to the program that asked.
func TestExchange(t *testing.T) {
	w := newWorld(t)
	manager := w.must("hca1", true)
	var asked atomic.Int32
	manager.Serve(mad.ClassSubnetDir, func(request *umad.Datagram) *[mad.Len]byte {
		s, err := mad.ParseSMP(request.MAD[:])
		if err != nil || s.AttributeID != mad.AttrSMInfo {
			return nil
		}
		asked.Add(1)
		i := mad.SMInfo{GUID: s.TransactionID, State: mad.SMMaster}
		i.Append(s.Data[:0])
		s.Method = mad.MethodGetResp
		s.SetStatus(mad.StatusOK, true)
		var b [mad.Len]byte
		s.Append(b[:0])
		return &b
	})
	type answer struct {
		info mad.SMInfo
		err  error
	}
	answers := make(chan answer)
	const clients, times = 4, 25
	for i := range clients {
		p := w.must([]string{"hca2", "hca3"}[i%2], false)
		path := [][]uint8{{1, 1}, {1, 7, 1}}[i%2]
		go func() {
			for range times {
				s, err := w.smp(p, mad.NewSMP(mad.MethodGet, mad.AttrSMInfo, 0, 0), path...)
				info, _ := mad.ParseSMInfo(s.Data[:])
				answers <- answer{info, err}
			}
		}()
	}
	seen := map[uint64]bool{}
	for range clients * times {
		a := <-answers
		if a.err != nil {
			t.Fatal(a.err)
		}
		if a.info.State != mad.SMMaster || seen[a.info.GUID] {
			t.Errorf("%+v, transaction seen before: %v", a.info, seen[a.info.GUID])
		}
		seen[a.info.GUID] = true
	}
	if asked.Load() != clients*times {
		t.Errorf("asked %d times", asked.Load())
	}
}

// TestExchangeIsGivenUp: a subnet manager that does not answer, or ends, does not keep others waiting.
func TestExchangeIsGivenUp(t *testing.T) {
	w := newWorld(t)
	manager := w.must("hca1", true)
	manager.Serve(mad.ClassSubnetDir, func(*umad.Datagram) *[mad.Len]byte { return nil })
	p := w.must("hca2", false)
	if _, err := w.smp(p, mad.NewSMP(mad.MethodGet, mad.AttrSMInfo, 0, 0), 1, 1); !errors.Is(err, umad.ErrTimeout) {
		t.Error(err)
	}
	done := make(chan error)
	go func() {
		_, err := w.smp(p, mad.NewSMP(mad.MethodGet, mad.AttrSMInfo, 0, 0), 1, 1)
		done <- err
	}()
	await.Eventually(w, "it is asked", func() bool {
		w.rack.Lock()
		defer w.rack.Unlock()
		return len(w.asked.byNumber) == 1
	})
	manager.Close()
	if err := <-done; !errors.Is(err, umad.ErrTimeout) {
		t.Error(err)
	}
	w.rack.Lock()
	defer w.rack.Unlock()
	if len(w.asked.byNumber)+len(w.asked.byKey) != 0 {
		t.Errorf("%d and %d exchanges are left", len(w.asked.byNumber), len(w.asked.byKey))
	}
}

// TestTraps: a trap goes to the subnet manager, again and again until it is repressed.
func TestTraps(t *testing.T) {
	w := newWorld(t)
	manager := w.must("hca1", true)
	traps := make(chan mad.SMP, 100)
	manager.Serve(mad.ClassSubnetLID, func(d *umad.Datagram) *[mad.Len]byte {
		if s, err := mad.ParseSMP(d.MAD[:]); err == nil && s.Method == mad.MethodTrap {
			traps <- s
		}
		return nil
	})
	set := func(number uint32, timeout uint8, lid ib.LID, path ...uint8) {
		t.Helper()
		s, err := w.smp(manager, mad.NewSMP(mad.MethodGet, mad.AttrPortInfo, number, 0), path...)
		if err != nil {
			t.Fatal(err)
		}
		i, err := mad.ParsePortInfo(s.Data[:])
		if err != nil {
			t.Fatal(err)
		}
		i.LID, i.MasterSMLID, i.SubnetTimeOut, i.PortState, i.PortPhysicalState = lid, 1, timeout, 0, 0
		s = mad.NewSMP(mad.MethodSet, mad.AttrPortInfo, number, 0)
		i.Append(s.Data[:0])
		if s, err = w.smp(manager, s, path...); err != nil || s.StatusCode() != mad.StatusOK {
			t.Fatalf("%v %#x", err, s.StatusCode())
		}
	}
	set(1, 14, 1)    // SubnetTimeOut 14: 67 ms
	set(0, 14, 2, 1) // sw1
	s := mad.NewSMP(mad.MethodSet, mad.AttrLinearForwardingTable, 0, 0)
	s.Data = [mad.SMPDataLen]byte{1: 1, 2: 0}
	if _, err := w.smp(manager, s, 1); err != nil {
		t.Fatal(err)
	}
	s = mad.NewSMP(mad.MethodSet, mad.AttrSwitchInfo, 0, 0)
	(&mad.SwitchInfo{LinearFDBTop: 2}).Append(s.Data[:0])
	if _, err := w.smp(manager, s, 1); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Command("unlink sw1[8]"); err != nil {
		t.Fatal(err)
	}
	first, second := <-traps, <-traps
	n, err := mad.ParseNotice(first.Data[:])
	if err != nil || n.TrapNumber != mad.TrapLinkStateChange || n.IssuerLID != 2 || first.TransactionID != second.TransactionID {
		t.Fatalf("the trap is %+v %+v, %v; want that the link of LID 2 has changed, and the same transaction when it is repeated",
			first.Header, n, err)
	}
	repress := mad.NewSMP(mad.MethodTrapRepress, mad.AttrNotice, 0, first.TransactionID)
	var d umad.Datagram
	d.Remote.LID = 2
	repress.Append(d.MAD[:0])
	if err := manager.Send(&d); err != nil {
		t.Fatal(err)
	}
	await.Eventually(w, "the trap is forgotten", func() (idle bool) {
		w.Do(func(now clock.Time, f *fabric.Fabric) { idle = f.TrapDeadline() == clock.Never })
		return idle
	})
}

func TestCommands(t *testing.T) {
	w := newWorld(t)
	w.must("hca1", true)
	for _, line := range []string{"", "  ", "unlink sw1[8]", `relink "sw1[8]"`, "rate sw1[7] 12xHDR", "loss sw1[7] 1%", "loss sw1[7] 0.5",
		"counter sw1[7] SymbolErrorCounter 5", "reset sw2", `description "hca1" "a new name"`, "image hca1 0x77"} {
		if answer, err := w.Command(line); err != nil || answer != "" {
			t.Errorf("%q: %q, %v", line, answer, err)
		}
	}
	if a, err := w.Command("help"); err != nil || !strings.Contains(a, "unlink NODE[PORT]") {
		t.Errorf("help: %q, %v", a, err)
	}
	if a, err := w.Command("clients"); err != nil || !strings.HasPrefix(a, "0 at hca1, id ") ||
		!strings.HasSuffix(a, ", subnet manager\n") {
		t.Errorf("clients: %q, %v; want the subnet manager at hca1", a, err)
	}
	for line, want := range map[string]string{
		"cut sw1[8]":                 `command "cut" is not known; allowed: clients, counter,`,
		"unlink":                     "unlink has 0 arguments; allowed: unlink NODE[PORT]",
		"unlink sw1":                 `port "sw1"; allowed: a node and a port, such as sw1[7]`,
		"unlink sw1[x]":              `port "sw1[x]"; allowed:`,
		"unlink sw9[1]":              `there is no node "sw9" in the fabric`,
		"unlink sw1[9]":              `node "sw1 switch" has no port 9`,
		`unlink "sw1[8]`:             "a quote is not closed",
		"rate sw1[7] 3xQDR":          `rate "3xQDR"; allowed:`,
		"rate sw1[7] 4xABC":          `rate "4xABC"; allowed:`,
		"loss sw1[7] 101%":           `loss "101%"; allowed: 0% to 100%`,
		"loss sw1[7] NaN":            `loss "NaN"; allowed:`,
		"counter sw1[7] Symbols 5":   `there is no counter "Symbols"`,
		"counter sw1[7] XmitWait -1": `value "-1"; allowed:`,
		"reset nobody":               `there is no node "nobody"`,
		"image hca1 0":               `GUID "0"; allowed:`,
		"description hca1 " + strings.Repeat("x", 65): "description has 65 bytes; allowed: up to 64",
	} {
		if _, err := w.Command(line); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", line, err, want)
		}
	}
}

// FuzzMessage: no control message makes the server panic or attach more than one client.
func FuzzMessage(f *testing.F) {
	for kind := byte(0); kind < 12; kind++ {
		b := make([]byte, controlLen)
		copy(b, []byte{0xef, 0xbe, 0xad, 0xde})
		b[atType], b[atBody] = kind, 1
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) != controlLen {
			return
		}
		s := NewServer(newRack(t))
		l := &deaf{}
		s.message(l, nil, b)
		for _, c := range s.clients {
			s.query(c, uint32(b[atType]), b[atBody:])
		}
		if len(s.clients) > 1 {
			t.Fatalf("%d clients", len(s.clients))
		}
		s.rack.Lock()
		for _, c := range s.clients {
			s.detach(c)
		}
		s.rack.Unlock()
		s.work.Wait()
	})
}

var errDeaf = errors.New("deaf")

// TestClientsAreNotToldOfTheTail: programs on ibsim's own library are not shown counters that it does not pass on.
func TestClientsAreNotToldOfTheTail(t *testing.T) {
	var b [mad.Len]byte
	b[1], b[3] = mad.ClassPerf, mad.MethodGetResp
	b[17] = mad.AttrClassPortInfo
	i := mad.ClassPortInfo{CapabilityMask: mad.CapPMExtendedWidth, CapabilityMask2: mad.Cap2PMAdditionalExtended | 4, RespTime: 18}
	i.Append(b[mad.PMADataOffset:mad.PMADataOffset])
	withoutTail(b[:])
	if got, err := mad.ParseClassPortInfo(b[mad.PMADataOffset:]); err != nil || got.CapabilityMask2 != 4 ||
		got.CapabilityMask != i.CapabilityMask || got.RespTime != 18 {
		t.Errorf("the class port info is %+v, %v", got, err)
	}
	b[3] = mad.MethodGet
	was := b
	if withoutTail(b[:]); b != was {
		t.Error("withoutTail changed a request")
	}
}
