package teams

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/catalogue"
	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/events"
	"github.com/softvpi/softvpi/internal/fabric/bridge"
	"github.com/softvpi/softvpi/internal/ipoib/service"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/link/vswitch"
	"github.com/softvpi/softvpi/internal/registry"
	"github.com/softvpi/softvpi/wire/eth"
)

// house is a driver with the adapters a, b and c at ports of a switch, and a registry in memory. It is the Driver of its roster.
type house struct {
	*Roster
	t        *testing.T
	changes  sync.Mutex
	adapters []config.Adapter
	known    []registry.Adapter
	reg      *registry.Registry
	log      *events.Log
	wires    *vswitch.Switch
	open     map[int]link.Link // what carriers stand on
	parked   [][]int
	failures []error // of the next calls of Unpark
}

func newHouse(t *testing.T) *house {
	h := &house{t: t, reg: registry.NewVolatile("a test"), log: events.Open(events.Config{}), open: map[int]link.Link{}}
	var err error
	if h.wires, err = vswitch.New(bridge.Config{}); err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{"a", "b", "c"} {
		h.adapters = append(h.adapters, config.Adapter{Name: name, Link: config.LinkSwitch,
			Address: netip.AddrFrom4([4]byte{192, 0, 2, byte(i + 1)}), Wire: config.Wire{Switch: "s", Prefix: 24}})
		known, err := h.reg.AddAdapter(name, catalogue.MLX5)
		if err != nil {
			t.Fatal(err)
		}
		h.known = append(h.known, known)
	}
	h.start()
	t.Cleanup(func() {
		h.closeWires()
		h.Roster.Close()
		_ = h.log.Close()
	})
	return h
}

// start makes the roster of what the registry keeps.
func (h *house) start() {
	h.Roster = New(Config{Driver: h, Adapters: h.adapters, Registry: h.reg, Events: h.log, Log: slog.New(slog.DiscardHandler),
		Changes: &h.changes})
}

func (h *house) closeWires() {
	for _, l := range h.open {
		_ = l.Close()
	}
	clear(h.open)
}

func (h *house) Adapter(i int) registry.Adapter  { return h.known[i] }
func (h *house) InfiniBand(int) bool             { return false }
func (h *house) Functions(int) int               { return 0 }
func (h *house) VLANs(string) []string           { return nil }
func (h *house) Beside([]int) []string           { return nil }
func (h *house) Clash(int, []int, [6]byte) error { return nil }
func (h *house) Wake()                           {}

func (h *house) Named(name string) (int, error) {
	i := slices.IndexFunc(h.adapters, func(a config.Adapter) bool { return a.Name == name })
	if i < 0 {
		return 0, api.Wrong("adapter", name, "a, b, c")
	}
	return i, nil
}

func (h *house) OpenWire(*config.Adapter, uint16) (link.Link, error) {
	return h.wires.Open(vswitch.PortConfig{PortConfig: bridge.PortConfig{PVID: 1}})
}

func (h *house) JoinIPoIB(string, int, []int, []int, service.TeamConfig) (*service.Team, error) {
	return nil, nil
}
func (h *house) AttachIPoIB(string, int, bool) error { return nil }
func (h *house) DetachIPoIB(string, int)             {}
func (h *house) PortSpeed(int) uint64                { return 0 }

func (h *house) ChangeWire(change func() error) error { return change() }

// Park closes the wires of carriers among adapters.
func (h *house) Park(adapters []int) error {
	if len(adapters) > 0 {
		h.parked = append(h.parked, adapters)
	}
	for _, i := range adapters {
		if l := h.open[i]; l != nil {
			_ = l.Close()
			delete(h.open, i)
		}
	}
	return nil
}

// Unpark puts the carriers among adapters on their teams.
func (h *house) Unpark(adapters []int) error {
	if len(h.failures) > 0 {
		err := h.failures[0]
		if h.failures = h.failures[1:]; err != nil {
			return err
		}
	}
	for _, i := range adapters {
		if _, carries := h.Of(i); !carries {
			continue
		}
		var cfg device.AdapterConfig
		if err := h.PutOn(i, &cfg); err != nil {
			return err
		}
		h.open[i] = cfg.Link
	}
	return nil
}

// members says who is in the team T, who carries it, and who is shown.
func (h *house) members() string {
	t := h.Teams()[0]
	var in, shown []string
	for _, m := range t.Members {
		in = append(in, m.Adapter+map[bool]string{true: "*"}[m.Primary])
	}
	for _, s := range h.Status() {
		for _, m := range s.Members {
			shown = append(shown, m.Adapter)
		}
	}
	return fmt.Sprintf("%s carried by %s, shown %s", strings.Join(in, " "), t.Carrier, strings.Join(shown, " "))
}

func (h *house) attach(adapter string, primary bool) error {
	_, err := h.AttachMember("T", adapter, api.TeamMemberRequest{Primary: primary})
	return err
}

func (h *house) detach(adapter string) error {
	_, err := h.DetachMember("T", adapter)
	return err
}

func (h *house) modify(kind string) error {
	_, err := h.ModifyTeam("T", api.TeamRequest{Name: "T", Type: kind})
	return err
}

func (h *house) mustTeam() {
	h.t.Helper()
	_, err := h.CreateTeam(api.TeamRequest{Name: "T", Type: "AFT"})
	if err = errors.Join(err, h.attach("b", false), h.attach("a", true)); err != nil {
		h.t.Fatal(err)
	}
}

// TestCarrier: who was attached first carries the team, with its MAC, whoever comes and goes, itself too, and whatever type it gets; nobody
// but who comes or goes is taken off its wire. All of it is there again when the driver starts anew (WinOF 5.50, 4.2.8.3).
func TestCarrier(t *testing.T) {
	h := newHouse(t)
	h.mustTeam()
	l := h.made[0].kind.(*wires).link
	mac := l.MAC()
	for _, step := range []struct {
		does string
		do   func() error
		want string
	}{
		{"nothing", func() error { return nil }, "b a* carried by b, shown b a"},
		{"another type", func() error { return h.modify("SLB") }, "b a* carried by b, shown b a"},
		{"the first leaves", func() error { return h.detach("b") }, "a* carried by b, shown a"},
		{"3AD", func() error { return h.modify("3AD") }, "a* carried by b, shown a"},
		{"another comes", func() error { return h.attach("c", false) }, "a* c carried by b, shown a c"},
		{"the primary one leaves", func() error { return h.detach("a") }, "c carried by b, shown c"},
		{"the first is back", func() error { return h.attach("b", true) }, "c b* carried by b, shown c b"},
		{"and leaves", func() error { return h.detach("b") }, "c carried by b, shown c"},
	} {
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.does, err)
		}
		if got := h.members(); got != step.want || h.made[0].kind.(*wires).link != l || l.MAC() != mac {
			t.Errorf("%s: they are %s, want %s; at another link: %v, with %v", step.does, got, step.want, h.made[0].kind.(*wires).link != l, l.MAC())
		}
	}
	if want := [][]int{{1}, {0}, {2}, {0}}; !reflect.DeepEqual(h.parked, want) {
		t.Errorf("these were put on wires: %v, want %v", h.parked, want)
	}
	before := h.Teams()
	h.Roster.Close()
	h.start()
	if got := h.Teams(); len(got) != 1 || got[0].GUID != before[0].GUID || got[0].Type != "3AD" || h.members() != "c carried by b, shown " {
		t.Errorf("after a restart there are %+v, want %+v", got, before)
	}
	h.closeWires()
	if err := h.Unpark([]int{1}); err != nil {
		t.Fatal(err)
	}
	if l := h.made[0].kind.(*wires).link; l.MAC() != mac {
		t.Errorf("after a restart it has the MAC %v, want %v", l.MAC(), mac)
	}
	if err := h.detach("c"); err != nil {
		t.Fatal(err)
	}
	if got := h.members(); got != " carried by , shown " || len(h.open) != 0 {
		t.Errorf("without members they are %s, on %v", got, h.open)
	}
	var wrong *api.FieldError
	if _, carries := h.Of(1); carries || errors.As(h.attach("b", false), &wrong) {
		t.Errorf("who carried it is not free: %v", wrong)
	}
}

// TestCarrier_InOneTeam: who carries a team is in no other, though its wire is in none.
func TestCarrier_InOneTeam(t *testing.T) {
	h := newHouse(t)
	h.mustTeam()
	_, err := h.CreateTeam(api.TeamRequest{Name: "U", Type: "AFT"})
	if err = errors.Join(err, h.detach("b")); err != nil {
		t.Fatal(err)
	}
	var wrong *api.FieldError
	_, err = h.AttachMember("U", "b", api.TeamMemberRequest{})
	if !errors.As(err, &wrong) || wrong.Value != `"b", which carries team "T"` {
		t.Errorf("it is in another: %v", err)
	}
}

// TestGivesMAC: only a member that gives the team its MAC later, or takes that away with it, changes it, and has all put on wires anew.
func TestGivesMAC(t *testing.T) {
	h := newHouse(t)
	h.mustTeam()
	w := h.made[0].kind.(*wires)
	at := func(when string, want eth.MAC) {
		t.Helper()
		if got := w.link.MAC(); got != want || h.made[0].MAC != got.String() {
			t.Errorf("%s: the MAC is %v, and %s is kept; want %v", when, got, h.made[0].MAC, want)
		}
	}
	gives := func(adapter string) {
		t.Helper()
		if _, err := h.AttachMember("T", adapter, api.TeamMemberRequest{GivesMAC: true}); err != nil {
			t.Fatal(err)
		}
	}
	first, l := eth.MAC(h.adapters[1].WireMAC()), w.link
	gives("c")
	at("another gives it", h.adapters[2].WireMAC())
	if w.link == l {
		t.Error("the link is the same")
	}
	if err := h.detach("c"); err != nil {
		t.Fatal(err)
	}
	if at("it takes it away", w.link.MAC()); w.link.MAC() == h.adapters[2].WireMAC() {
		t.Error("two have one MAC")
	}
	if err := h.detach("b"); err != nil {
		t.Fatal(err)
	}
	gives("b")
	at("the carrier gives it", first)
	if l = w.link; h.detach("b") != nil || w.link != l {
		t.Error("the wire of the carrier has not left alone")
	}
	at("the carrier's wire has left", first)
	if err := h.attach("b", false); err != nil {
		t.Fatal(err)
	}
	at("and is back", first)
}

// notStarted is how many events say that an adapter does not start.
func (h *house) notStarted() (n int) {
	p, err := h.log.Query(events.Query{})
	if err != nil {
		h.t.Fatal(err)
	}
	for _, e := range p.Events {
		if strings.Contains(e.Symbol+e.Message, "worse") {
			n++
		}
	}
	return n
}

// TestChange_Fails: a team whose members cannot be what they are to be is what it was before, in the registry too; if that cannot be
// either, events say which adapters do not start.
func TestChange_Fails(t *testing.T) {
	h := newHouse(t)
	h.mustTeam()
	broken, worse := errors.New("broken"), errors.New("worse")
	for what, c := range map[string]struct {
		failures []error
		shown    string
		events   int // more than before
	}{
		"once":  {[]error{broken}, "b a", 0},
		"twice": {[]error{broken, worse}, "", 3},
	} {
		h.failures = c.failures
		before := h.notStarted()
		if err := h.attach("c", false); !errors.Is(err, broken) || len(c.failures) > 1 && !errors.Is(err, worse) {
			t.Errorf("%s: %v", what, err)
		}
		if got, want := h.members(), "b a* carried by b, shown "+c.shown; got != want {
			t.Errorf("%s: they are %s, want %s", what, got, want)
		}
		if n := h.notStarted() - before; n != c.events {
			t.Errorf("%s: %d adapters are said not to start, want %d", what, n, c.events)
		}
		if kept := h.reg.Teams(); len(kept) != 1 || len(kept[0].Members) != 2 {
			t.Errorf("%s: the registry has %+v", what, kept)
		}
		if _, err := h.ModifyTeam("T", api.TeamRequest{Name: "T", Type: "SLB"}); err != nil { // it can be changed afterwards
			t.Errorf("%s: %v", what, err)
		}
		if _, err := h.ModifyTeam("T", api.TeamRequest{Name: "T", Type: "AFT"}); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}
