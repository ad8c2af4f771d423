package subnet

import (
	"errors"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/subnet/routing"
	"github.com/softvpi/softvpi/wire/mad"
)

// TestConfiguredLanes: the lane tables are those configured for the kind of port, cut to the lanes that both ends of
// a link have (opensm(8), "QOS CONFIGURATION").
func TestConfiguredLanes(t *testing.T) {
	q := defaultQoS()
	q.CA.SLtoVL = [16]uint8{0: 3, 1: 2, 2: 1, 3: 0, 4: 15, 5: 9}
	q.CA.High, q.CA.HighLimit = []mad.VLArbitration{{VL: 3, Weight: 7}, {VL: 8, Weight: 9}}, 5
	q.Switch.Max, q.Switch.HighLimit = 5, 200
	q.Switch.Low = nil
	for range 40 {
		q.Switch.Low = append(q.Switch.Low, mad.VLArbitration{VL: 1, Weight: 2})
	}
	b, n := smallBench(t)
	for p := range n[4].ports {
		n[4].ports[p].info.VLArbitrationLowCap = 36
	}
	b.start(n[0], Config{QoS: q})
	b.run(time.Second)
	b.mustBeUp()
	host, uplink := &n[2].ports[1], &n[4].ports[7]
	if i := host.info; i.VLHighLimit != 5 || i.OperationalVLs != 3 {
		t.Errorf("host: high limit %d, operational VLs %d, want 5 and 3 (4 lanes)", i.VLHighLimit, i.OperationalVLs)
	}
	if i := uplink.info; i.VLHighLimit != 200 || i.OperationalVLs != 3 {
		t.Errorf("switch: high limit %d, operational VLs %d, want 200 and 3", i.VLHighLimit, i.OperationalVLs)
	}
	if got := host.sl[0]; got != [8]byte{0x32, 0x10, 0xf1, 0, 0, 0, 0, 0} {
		t.Errorf("service levels of the host: %x", got)
	}
	if got := host.arb[3]; got[0] != (mad.VLArbitration{VL: 3, Weight: 7}) || got[1] != (mad.VLArbitration{}) {
		t.Errorf("arbitration of the host: %v", got[:3])
	}
	low := 0
	for _, half := range []uint32{1, 2} {
		for _, e := range uplink.arb[half] {
			if e.Weight == 2 {
				low++
			}
		}
	}
	if low != 36 {
		t.Errorf("%d entries of low priority at the switch, want 36, for which it has room, of the 40 configured", low)
	}
}

// TestLanesOfRoutesComeFirst: routes over several lanes need each service level on its own lane; configured tables
// that do not provide this are replaced, others are used.
func TestLanesOfRoutesComeFirst(t *testing.T) {
	q := defaultQoS()
	q.Switch.SLtoVL[1] = 0
	s := &SM{routes: &routing.Routes{Lanes: 2}, cfg: Config{QoS: q}}
	if s.qos().Switch.SLtoVL[1] != 1 {
		t.Error("service level 1 is not on lane 1 though the routes need it")
	}
	q.Switch.SLtoVL[1], q.Switch.HighLimit = 1, 77
	if s.qos().Switch.HighLimit != 77 {
		t.Error("configured tables that fit were not used")
	}
}

func TestWrongTablesAreRefused(t *testing.T) {
	for field, change := range map[string]func(c *Config){
		"QoS lanes of CA ports":                            func(c *Config) { c.QoS.CA.Max = 16 },
		"QoS lane of a service level of router ports":      func(c *Config) { c.QoS.Router.SLtoVL[3] = 16 },
		"QoS lane in an arbitration table of switch ports": func(c *Config) { c.QoS.Switch.Low[2].VL = 15 },
		"QoS entries of an arbitration table of CA ports":  func(c *Config) { c.QoS.CA.High = make([]mad.VLArbitration, 65) },
		"head of queue life time":                          func(c *Config) { c.Limits.HOQLife = 32 },
		"VL stall count":                                   func(c *Config) { c.Limits.StallCount = 0 },
		"code of operational VLs":                          func(c *Config) { c.Limits.MaxVLs = 6 },
	} {
		l := DefaultLimits()
		c := Config{QoS: defaultQoS(), Limits: &l}
		change(&c)
		var e *ConfigError
		if _, err := New(c); !errors.As(err, &e) || e.Field != field {
			t.Errorf("error %v, want one that names %s", err, field)
		}
	}
}

// TestLimits: the life times, stall counts, thresholds and lanes of all ports are those configured.
func TestLimits(t *testing.T) {
	b, n := smallBench(t)
	l := Limits{PacketLife: 15, HOQLife: 14, LeafHOQLife: 13, StallCount: 6, LeafStallCount: 5, MaxVLs: 2, SubnetTimeout: 17,
		LocalPhyErrors: 4, OverrunErrors: 3}
	b.start(n[0], Config{Limits: &l})
	b.run(time.Second)
	b.mustBeUp()
	if i := n[4].ports[7].info; i.HOQLife != 14 || i.VLStallCount != 6 || i.OperationalVLs != 2 || i.LocalPhyErrors != 4 ||
		i.OverrunErrors != 3 || n[4].sw.LifeTimeValue != 15 {
		t.Errorf("between switches: %+v, %+v", i, n[4].sw)
	}
	if i := n[4].ports[2].info; i.HOQLife != 13 || i.VLStallCount != 5 {
		t.Errorf("towards a host: %+v", i)
	}
	if i := n[1].ports[1].info; i.SubnetTimeOut != 17 || i.LocalPhyErrors != 4 {
		t.Errorf("of a host: %+v", i)
	}
}
