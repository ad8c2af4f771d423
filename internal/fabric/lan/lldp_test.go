package lan

import (
	"strings"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/dcb"
	"github.com/softvpi/softvpi/internal/fabric/ethernet"
	"github.com/softvpi/softvpi/internal/qos"
	"github.com/softvpi/softvpi/wire/eth"
	"github.com/softvpi/softvpi/wire/lldp"
)

// speaking returns hosts h0 and h1 at switches s and t that are connected, and offer their settings by DCBX.
func speaking(t *testing.T, l LLDP) *bench {
	t.Helper()
	port := ethernet.PortConfig{Rate: 1e9, FlowControl: ethernet.PriorityPause, Lossless: 1 << 3, PVID: 1}
	for i, w := range []uint8{40, 1, 9, 50} {
		port.Queues[i].Weight = w
	}
	for i := 4; i < 8; i++ {
		port.Queues[i].Strict = true
	}
	host := func(name string) Node {
		return Node{Name: name, Station: &ethernet.StationConfig{Wire: ethernet.PortConfig{Rate: 1e9}, Waiting: 1 << 20}}
	}
	sw := func(name string, last byte) Node {
		c := ethernet.Config{MAC: eth.MAC{2, 0, 0, 0, 9, last}}
		return Node{Name: name, Ports: []ethernet.PortConfig{port, port}, LLDP: l, Switch: c}
	}
	n, err := New(0, Config{Timing: true, Nodes: []Node{host("h0"), host("h1"), sw("s", 1), sw("t", 2)}, Links: []Link{
		{ethernet.End{Node: 0}, ethernet.End{Node: 2}}, {ethernet.End{Node: 1}, ethernet.End{Node: 3}},
		{ethernet.End{Node: 2, Port: 1}, ethernet.End{Node: 3, Port: 1}}}})
	if err != nil {
		t.Fatal(err)
	}
	return &bench{t, n, 0}
}

// converse lets an adapter's agent and the switches talk for a time.
func (b *bench) converse(j *Jack, a *dcb.Agent, d time.Duration) {
	b.Helper()
	for until := b.now.Add(d); b.now < until; {
		a.Advance(b.now)
		for a.Pending() {
			j.Transmit(b.now, a.Transmit(b.now))
		}
		b.to(b.now.Add(50 * time.Millisecond))
		for j.Waiting() > 0 {
			if f := j.Next(b.now); lldp.NearestBridge == eth.MAC(f) {
				a.Receive(b.now, f)
			}
		}
	}
}

func adapterAgent(b *bench, willing bool, protocol dcb.Protocol) *dcb.Agent {
	m := mac(1)
	a := dcb.New(dcb.Config{MAC: m, Local: lldp.PDU{ChassisID: lldp.ChassisOf(m), PortID: lldp.PortOf(m), SystemName: "host"},
		Transmit: dcb.All, Receive: dcb.All, DCBX: true,
		Local8021Q: dcb.Local8021Q{Willing: willing, Protocol: protocol, Settings: qos.Defaults()}})
	a.Start(b.now)
	a.SetWire(b.now, true)
	return a
}

// A willing adapter gets the PFC, the shares and the applications of the port at which it is, by both protocols, anew when the port
// is changed by command; one that is not willing gets nothing. Without DCBX there are the base TLVs alone.
func TestSwitchesOfferTheirSettings(t *testing.T) {
	applications := []qos.Application{{Selector: qos.Port, Protocol: 4791, Priority: 3}}
	for _, c := range []struct {
		name     string
		lldp     LLDP
		willing  bool
		pfc      uint8
		protocol dcb.Protocol
	}{
		{"IEEE", LLDP{On: true, DCBX: true, Protocol: dcb.IEEE, ETS: true, Applications: applications}, true, 1 << 3, dcb.Auto},
		{"CEE", LLDP{On: true, DCBX: true, Protocol: dcb.CEE, ETS: true, Applications: applications}, true, 1 << 3, dcb.Auto},
		{"not willing", LLDP{On: true, DCBX: true, ETS: true, Applications: applications}, false, 0, dcb.Auto},
		{"no DCBX", LLDP{On: true}, true, 0, dcb.Auto},
	} {
		b := speaking(t, c.lldp)
		j := b.plug("h0")
		a := adapterAgent(b, c.willing, c.protocol)
		b.converse(j, a, 5*time.Second)
		o := a.Operative()
		if o.PFC != c.pfc {
			t.Errorf("%s: PFC %08b, want %08b", c.name, o.PFC, c.pfc)
		}
		if taken := c.pfc != 0; (o.ETS.Bandwidth[0] == 40 && o.ETS.Bandwidth[3] == 50 && len(o.Applications) == 1) != taken {
			t.Errorf("%s: %+v", c.name, o.Settings)
		}
		if n := a.Neighbours(); len(n) != 1 || n[0].SystemName != "s" || n[0].PortID.Port() != "s[1]" || n[0].PortDescription != "to h0" {
			t.Errorf("%s: hears %+v", c.name, n)
		}
		b.do("pfc s 5")
		b.converse(j, a, 5*time.Second)
		if got := a.Operative().PFC; c.pfc != 0 && got != 1<<5 {
			t.Errorf("%s: after a change PFC %08b", c.name, got)
		}
		heard := b.do("lldp all")
		for _, want := range []string{"s[1] hears host port 02:00:00:00:00:01", "s[2] hears t port t[2]", "t[2] hears s port s[2]", "t[1] hears nobody"} {
			if !strings.Contains(heard, want) {
				t.Errorf("%s: %q is not in\n%s", c.name, want, heard)
			}
		}
		does := map[bool]string{true: "takes", false: "not willing"}[c.willing]
		if s := b.State(b.now, ethernet.End{Node: 2}); c.lldp.DCBX && !strings.Contains(s.DCBX, does) {
			t.Errorf("%s: DCBX %q", c.name, s.DCBX)
		}
		j.Close(b.now)
		if heard := b.do("lldp s"); !strings.Contains(heard, "s[1] hears nobody") {
			t.Errorf("%s: after the adapter was pulled out\n%s", c.name, heard)
		}
	}
}

// Data units go no further than the other end of a link, and a switch that does not speak drops them.
func TestSwitchesDoNotForwardLLDP(t *testing.T) {
	for _, l := range []LLDP{{}, {On: true}} {
		b := speaking(t, l)
		from, to := b.plug("h0"), b.plug("h1")
		b.to(b.now.Add(time.Second))
		b.drain(to)
		from.Transmit(b.now, (&lldp.PDU{ChassisID: lldp.ChassisOf(mac(1)), PortID: lldp.PortOf(mac(1)), TTL: 100}).Frame(mac(1)))
		from.Transmit(b.now, append(lldp.NearestBridge[:], make([]byte, 60)...)) // not LLDP, and malformed
		b.to(b.now.Add(time.Millisecond))
		for to.Waiting() > 0 {
			if f := to.Next(b.now); f[11] == 1 {
				t.Errorf("forwarded: % x", f)
			}
		}
	}
}

// The shares of queues are percentages of classes, whose sum is 100 whatever the weights are.
func TestSharesOfQueuesArePercentages(t *testing.T) {
	for _, weights := range [][8]uint8{{1, 1, 1, 1, 1, 1, 1, 1}, {1, 1, 1}, {100, 1}, {0, 0, 0, 7}, {33, 33, 35, 9, 1, 2, 3, 99}} {
		var q [ethernet.Priorities]ethernet.Queue
		for i, w := range weights {
			q[i] = ethernet.Queue{Weight: w, Strict: w == 0}
		}
		e := ethernet.SharesOf(&q)
		if err := e.Check(); err != nil {
			t.Errorf("%v: %v, %v", weights, err, e)
		}
	}
}
