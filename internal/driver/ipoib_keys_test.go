package driver

import (
	"testing"
	"time"
)

// The keys of IPoIB count for InfiniBand ports, from the next start of their adapter on; for Ethernet ports there are none.
func TestIPoIBKeys(t *testing.T) {
	cfg := twoCables(t)
	d := start(t, cfg)
	defer stop(t, d)
	if c := d.ipoib.config(0); c.MTU != 4092 || c.SATimeout != time.Second || c.SARetries != 10 || c.QueryPaths || c.GeneralQueryRuns != 3 || c.QueryResponseRuns != 2 || c.LocalMaxAge != 5 || c.LocalInterval != time.Minute {
		t.Errorf("defaults %+v", c)
	}
	for key, value := range map[string]string{
		"*JumboPacket": "2000", "SaTimeout": "500", "SaRetries": "4", "EnableQPR": "1", "McastIgmpMldGeneralQueryInterval": "7", "McastQueryResponseInterval": "6",
		"LocalEndpointMaxAge": "8", "LocalEndpointMonitorInterval": "20000",
	} {
		if _, err := d.Set("left", key, &value); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.RestartAdapter("left"); err != nil {
		t.Fatal(err)
	}
	if c := d.ipoib.config(0); c.MTU != 2000 || c.SATimeout != 500*time.Millisecond || c.SARetries != 4 || !c.QueryPaths || c.GeneralQueryRuns != 7 || c.QueryResponseRuns != 6 || c.LocalMaxAge != 8 || c.LocalInterval != 20*time.Second {
		t.Errorf("set %+v", c)
	}
	eventually(t, "the interface does not run with its MTU", func() bool {
		d.ipoib.mu.Lock()
		defer d.ipoib.mu.Unlock()
		x := d.ipoib.ports[0]
		return x != nil && x.list["left"].Status().MTU == 2000
	})
	if _, err := d.Set("left", "SaTimeout", new(string)); err == nil {
		t.Error("an empty time-out was taken")
	}
}
