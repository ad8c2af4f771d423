package ethernet

import (
	"testing"

	"github.com/softvpi/softvpi/internal/catalogue"
)

// TestDefaults: a function has the catalogue's defaults, of each generation, and they are allowed.
func TestDefaults(t *testing.T) {
	for g, buffers := range map[catalogue.Generation]int{catalogue.MLX5: 512, catalogue.MLX4: 4096} {
		c := Defaults(g)
		c.MAC = macA
		if err := c.Check(); err != nil {
			t.Errorf("%v: %v", g, err)
		}
		if c.ReceiveBuffers != buffers || c.TransmitBuffers != 2048 || c.JumboPacket != 1514 || c.MaxNumOfMCList != 128 ||
			c.RSSProfile != 1 || c.LSOSize != 64000 || c.RxPacketCount != 5 || c.RxPacketTime != 10 || c.TxHashDistribution != 3 {
			t.Errorf("%v: %+v", g, c)
		}
	}
}

// TestCheck: each key's value is checked against the catalogue, and the error names the key and what is allowed.
func TestCheck(t *testing.T) {
	for name, c := range map[string]struct {
		value int
		want  string
	}{
		"*JumboPacket":         {613, "*JumboPacket is 613, want 614 to 9614 bytes"},
		"*ReceiveBuffers":      {4097, "*ReceiveBuffers is 4097, want 256 to 4096 packets"},
		"*TransmitBuffers":     {255, "*TransmitBuffers is 255, want 256 to 4096 packets"},
		"*RSSProfile":          {6, "*RSSProfile is 6, want 1 (closest processor), 2 (closest processor static), 3 (NUMA scaling), 4 (NUMA scaling static), 5 (conservative scaling)"},
		"LSOMinSegment":        {1, "LSOMinSegment is 1, want 2 to 32 segments"},
		"VlanId":               {4096, "VlanId is 4096, want 0 to 4095"},
		"*NumRSSQueues":        {65, "*NumRSSQueues is 65, want 1 to 64 queues"},
		"RxIntModeration":      {-2, "RxIntModeration is -2, want 1 (static), 2 (adaptive)"},
		"MaxNumOfMCList":       {63, "MaxNumOfMCList is 63, want 64 to 1024 addresses"},
		"AsyncReceiveIndicate": {3, "AsyncReceiveIndicate is 3, want 0 (disabled), 1 (threaded DPC), 2 (polling)"},
	} {
		cfg := plain(macA)
		if !cfg.Set(name, c.value) {
			t.Errorf("there is no field of %s", name)
		}
		if _, err := New(cfg, &host{}); err == nil || err.Error() != c.want {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	cfg := plain(macA)
	if cfg.Set("roce_mode", 1) {
		t.Error("an Ethernet function has a RoCE mode")
	}
	cfg.MAC = [6]byte{1}
	if _, err := New(cfg, &host{}); err == nil || err.Error() != "MAC is 01:00:00:00:00:00, want an address of one station that is not 0" {
		t.Error(err)
	}
	for _, name := range Keys() {
		if _, parameter := catalogue.LookupParameter(name); len(catalogue.Lookup(name)) == 0 && !parameter {
			t.Errorf("%s is in no table of the manuals", name)
		}
	}
}

// TestChange: what rings and queues do not depend on changes while the function works, and the rest is refused.
func TestChange(t *testing.T) {
	x := alone(t, plain(macB))
	cfg := x.Config()
	cfg.JumboPacket, cfg.RscIPv4, cfg.TCPUDPChecksumIPv4, cfg.VlanID = 9014, 0, 0, 5
	if err := x.Change(cfg); err != nil {
		t.Fatal(err)
	}
	f := tcpFlow()
	f.tags = []uint16{5}
	first := f.frame(counting(5000))
	f.sequence = 5000
	x.arrive(0, first, f.frame(counting(10)), tcpFlow().frame(nil))
	if len(x.host.packets) != 2 || x.host.packets[0].Header.ChecksumValid {
		t.Errorf("%d packets, %+v; want two in VLAN 5, not joined and not checked", len(x.host.packets), x.host.packets[0].Packet)
	}
	if err := x.Send(0, 0, &Send{Frame: make([]byte, 9014)}); err != nil {
		t.Error(err)
	}
	cfg.VlanID = 0
	if err := x.Change(cfg); err != nil {
		t.Fatal(err)
	}
	if x.arrive(0, tcpFlow().frame(nil), f.frame(nil)); len(x.host.packets) != 3 {
		t.Error("VLAN 5 is still that of all frames")
	}
	for want, change := range map[string]func(c *Config){
		"*NumRSSQueues is 4, want 8 until the function starts again":                       func(c *Config) { c.NumRSSQueues = 4 },
		"*ReceiveBuffers is 1024, want 512 until the function starts again":                func(c *Config) { c.ReceiveBuffers = 1024 },
		"*JumboPacket is 1, want 614 to 9614 bytes":                                        func(c *Config) { c.JumboPacket = 1 },
		"MAC is 02:00:00:00:00:0a, want 02:00:00:00:00:0b until the function starts again": func(c *Config) { c.MAC = macA },
		"Host.Large is true, want false without Host.Partial: joined segments have a checksum to be made": func(c *Config) {
			c.Host.Partial = false
		},
	} {
		cfg := x.Config()
		change(&cfg)
		if err := x.Change(cfg); err == nil || err.Error() != want {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
