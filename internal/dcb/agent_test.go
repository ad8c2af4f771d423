package dcb

import (
	"testing"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/qos"
	"github.com/softvpi/softvpi/wire/eth"
	"github.com/softvpi/softvpi/wire/lldp"
)

var (
	macA = eth.MAC{2, 0, 0, 0, 0, 0x0a}
	macB = eth.MAC{2, 0, 0, 0, 0, 0x0b}
	macC = eth.MAC{2, 0, 0, 0, 0, 0x0c}
)

// config returns that of a port that speaks DCBX, by its defaults.
func config(mac eth.MAC, willing bool) Config {
	return Config{MAC: mac, Local: lldp.PDU{ChassisID: lldp.ChassisOf(mac), PortID: lldp.PortOf(mac), SystemName: "host"},
		Transmit: All, Receive: All, DCBX: true, Local8021Q: Local8021Q{Willing: willing, Settings: qos.Defaults()}}
}

// run lets an agent work alone until a time, and returns when it sent what.
func run(a *Agent, from, to clock.Time) (at []clock.Time, sent []lldp.PDU) {
	for now := from; ; now = a.Deadline() {
		if now > to {
			return at, sent
		}
		a.Advance(now)
		for f := a.Transmit(now); f != nil; f = a.Transmit(now) {
			p, _, err := lldp.Parse(f[eth.EthernetLen:])
			if err != nil {
				panic(err)
			}
			at, sent = append(at, now), append(sent, p)
		}
	}
}

func whole(at []clock.Time) (s []int) {
	for _, t := range at {
		s = append(s, int(t/second))
	}
	return s
}

func same(a, b []int) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// unit is what a port sends that says this.
func unit(mac eth.MAC, change func(*lldp.PDU)) []byte {
	p := lldp.PDU{ChassisID: lldp.ChassisOf(mac), PortID: lldp.PortOf(mac), TTL: 120}
	if change != nil {
		change(&p)
	}
	return p.Frame(mac)
}

// TestAgent_Times: a data unit at once and every 30 s (msgTxInterval), with a TTL of four of them and one second (txTTL); for a new
// neighbour four, a second apart (txFastInit, msgFastTx).
func TestAgent_Times(t *testing.T) {
	a := New(config(macA, true))
	a.Start(0)
	at, sent := run(a, 0, seconds(65))
	if got := whole(at); !same(got, []int{0, 30, 60}) || sent[0].TTL != 121 || sent[0].SystemName != "host" {
		t.Errorf("sent at %v, the first %+v", got, sent[0])
	}
	a.Receive(seconds(65), unit(macB, nil))
	at, _ = run(a, seconds(65), seconds(100))
	if got := whole(at); !same(got, []int{65, 66, 67, 68, 98}) {
		t.Errorf("for a new neighbour at %v", got)
	}
}

// TestAgent_Credit: neighbours that come and go, and changes, have at most five data units follow each other, and then one a second
// (txCreditMax, txAddCredit).
func TestAgent_Credit(t *testing.T) {
	a := New(config(macA, true))
	a.Start(0)
	n := 0
	for ms := range clock.Time(20_000) {
		now := ms * 1e6
		c := config(macA, true)
		c.Local.SystemName = string(rune('a' + ms%2))
		a.Configure(now, c)
		a.Receive(now, unit(eth.MAC{2, 1, 1, 1, byte(ms >> 8), byte(ms)}, nil))
		a.Advance(now)
		for a.Transmit(now) != nil {
			n++
		}
	}
	if n < 5+19 || n > 5+20 {
		t.Errorf("%d data units in 20 s, want 5 and one for each second", n)
	}
	if got := len(a.Neighbours()); got != mostNeighbours || !a.Crowded(seconds(20)) || a.Crowded(seconds(200)) {
		t.Errorf("%d neighbours, crowded %v", got, a.Crowded(seconds(20)))
	}
	if c := a.Counters(); c.FramesIn != 20_000 || c.FramesDiscarded != 20_000-mostNeighbours {
		t.Errorf("%+v", c)
	}
}

// TestAgent_Shutdown: a port that stops says so with a TTL of 0, is silent for reinitDelay, and then begins anew; a neighbour that
// says so is forgotten at once.
func TestAgent_Shutdown(t *testing.T) {
	a := New(config(macA, true))
	a.Start(0)
	run(a, 0, seconds(1))
	a.Receive(seconds(1), unit(macB, nil))
	a.Stop(seconds(10))
	_, sent := run(a, seconds(10), seconds(10))
	idle := !a.Pending() && a.Deadline() == clock.Never && len(a.Neighbours()) == 0
	if len(sent) != 1 || sent[0].TTL != 0 || sent[0].SystemName != "" || !idle {
		t.Fatalf("sent %+v, pending %v", sent, a.Pending())
	}
	a.Receive(seconds(10), unit(macB, nil))
	if len(a.Neighbours()) != 0 || a.Counters().FramesIn != 1 {
		t.Error("one that is stopped receives")
	}
	a.Start(seconds(11))
	at, _ := run(a, seconds(11), seconds(20))
	if got := whole(at); !same(got, []int{12}) {
		t.Errorf("after a restart at %v, want 12", got)
	}
	a.Receive(seconds(20), unit(macB, nil))
	a.Receive(seconds(21), unit(macC, nil))
	a.Receive(seconds(22), unit(macB, func(p *lldp.PDU) { p.TTL = 0 }))
	if n := a.Neighbours(); len(n) != 1 || n[0].MAC != macC || a.Counters().Shutdowns != 1 {
		t.Errorf("%+v", n)
	}
}

// TestAgent_Ageing: a neighbour is forgotten when its TTL has passed since it was last heard.
func TestAgent_Ageing(t *testing.T) {
	a := New(config(macA, true))
	a.Start(0)
	short := unit(macB, func(p *lldp.PDU) { p.TTL = 10; p.PFC = &lldp.PFC{Enabled: 8} })
	a.Receive(0, short)
	a.Receive(seconds(5), short)
	run(a, seconds(5), seconds(15)-1)
	if o := a.Operative(); len(a.Neighbours()) != 1 || o.PFC != 8 || o.PFCFrom != qos.FromPeer {
		t.Errorf("%+v", o)
	}
	run(a, seconds(15), seconds(15))
	if o := a.Operative(); len(a.Neighbours()) != 0 || o.PFC != 0 || o.PFCFrom != qos.FromDefault || a.Counters().Ageouts != 1 {
		t.Errorf("%+v, %+v", o, a.Counters())
	}
}

// TestAgent_Wire: without a wire nothing is sent, and what is known ages; with a new one everything begins again.
func TestAgent_Wire(t *testing.T) {
	a := New(config(macA, true))
	a.Start(0)
	run(a, 0, seconds(1))
	a.Receive(seconds(1), unit(macB, nil))
	a.SetWire(seconds(2), false)
	if at, _ := run(a, seconds(2), seconds(60)); len(at) != 0 || len(a.Neighbours()) != 1 {
		t.Errorf("sent at %v", at)
	}
	a.SetWire(seconds(60), true)
	if at, _ := run(a, seconds(60), seconds(61)); len(at) != 1 || len(a.Neighbours()) != 0 {
		t.Errorf("sent at %v, %d neighbours", at, len(a.Neighbours()))
	}
}

// TestAgent_Modes: LLDP_NB_TX_MODE and LLDP_NB_RX_MODE: what is off passes nothing, mandatory the three TLVs, and DCBX needs all.
func TestAgent_Modes(t *testing.T) {
	for _, c := range []struct {
		transmit, receive Mode
		dcbx, name, heard bool
		speaks            bool
	}{
		{Off, Off, true, false, false, false},
		{Mandatory, Mandatory, true, false, true, false},
		{All, Mandatory, true, true, true, false},
		{All, All, false, true, true, false},
		{All, All, true, true, true, true},
	} {
		cfg := config(macA, true)
		cfg.Transmit, cfg.Receive, cfg.DCBX = c.transmit, c.receive, c.dcbx
		a := New(cfg)
		a.Start(0)
		a.Receive(0, unit(macB, func(p *lldp.PDU) { p.SystemName = "switch"; p.PFC = &lldp.PFC{Enabled: 8} }))
		_, sent := run(a, 0, 0)
		if (len(sent) > 0) != (c.transmit != Off) {
			t.Fatalf("%v: sent %+v", c, sent)
		}
		for _, p := range sent {
			if (p.SystemName != "") != c.name || (p.PFC != nil) != c.speaks {
				t.Errorf("%v: sent %+v", c, p)
			}
		}
		n := a.Neighbours()
		if (len(n) == 1) != c.heard || c.heard && (n[0].SystemName != "") != (c.receive == All) {
			t.Errorf("%v: neighbours %+v", c, n)
		}
		if (a.Operative().PFC == 8) != c.speaks || (a.DCBX().State != Silent) != c.speaks {
			t.Errorf("%v: %+v, %v", c, a.Operative(), a.DCBX().State)
		}
	}
}

// TestAgent_Faults: what is wrong is counted (9.2.7.7), and harms nobody.
func TestAgent_Faults(t *testing.T) {
	a := New(config(macA, true))
	a.Start(0)
	a.Receive(0, unit(macB, func(p *lldp.PDU) { p.Others = []lldp.TLV{{Type: 9, Value: []byte{1}}} }))
	broken := unit(macC, nil)
	broken[eth.EthernetLen] = 0x04 // a port ID first
	a.Receive(0, broken)
	a.Receive(0, broken[:10])
	half := unit(macB, func(p *lldp.PDU) { p.PFC = &lldp.PFC{} })
	half[37] = 5 // the length of the PFC TLV: 5
	a.Receive(0, append(half[:43:43], 0, 0))
	want := Counters{FramesIn: 3, FramesInErrors: 2, FramesDiscarded: 1, TLVsDiscarded: 1, TLVsUnrecognized: 1}
	got := a.Counters()
	if got.FramesOut = 0; got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}
