package mlxtool

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/testbed/driverbed"
	"github.com/softvpi/softvpi/internal/tools/tool"
)

// TestPacketFilter: the filter of an Ethernet interface and its off-load for VXLAN, as its keys make them while it works (WinOF 5.50,
// 5.5.3.1 and 5.5.3.6).
func TestPacketFilter(t *testing.T) {
	dir, err := os.MkdirTemp("", "filter")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	cfg := driverbed.Config(t, config.Adapter{Name: "left"})
	for i, name := range []string{"nic", "other"} {
		nic, err := config.ParseAdapter(fmt.Sprintf("%s=192.0.2.%d/24,device=card,mac=02:00:00:00:00:%02d,linkmtu=9000,datagram=%s,host=stream:%s", name,
			i+1, i+1, filepath.Join(dir, name), filepath.Join(dir, name+".host")))
		if err != nil {
			t.Fatal(err)
		}
		cfg.Adapters = append(cfg.Adapters, nic)
	}
	g := &rig{t, cfg.Socket, cfg.State, cfg.Adapters, driverbed.Start(t, cfg)}
	filter := func() map[string]any {
		t.Helper()
		out := map[string]any{}
		for _, row := range g.tables("show", "packet-filter", "nic")[0].Rows {
			out[row["filter"].(string)] = row["value"]
		}
		return out
	}
	want := map[string]any{"Packet Filter": "0x0f", "Directed": true, "Multicast": true, "All Multicast": true, "Broadcast": true,
		"Promiscuous": false, "MAC Address": "02:00:00:00:00:01", "Multicast List": nil, "Multicast List Limit": 128.0,
		"VLANs": "untagged", "Largest Frame": 9014.0, "Flows": 0.0}
	if diff := cmp.Diff(want, filter()); diff != "" {
		t.Error(diff)
	}
	client := api.NewClient(g.socket)
	for _, c := range []struct{ key, value, vlans string }{{"VlanID", "7", "7"}, {"PromiscuousVlan", "1", "all"}} {
		if _, err := client.Set(t.Context(), "nic", c.key, c.value); err != nil {
			t.Fatal(err)
		}
		if got := filter()["VLANs"]; got != c.vlans {
			t.Errorf("with %s %s the VLANs are %v, want %s", c.key, c.value, got, c.vlans)
		}
	}
	if text := g.ok("show", "packet-filter"); !strings.Contains(text, "Interface: nic") || strings.Contains(text, "left") {
		t.Errorf("all interfaces:\n%s", text)
	}
	if text := g.ok("show", "packet-filter", "left"); !strings.Contains(text, "Interface: left\n  no Ethernet function") {
		t.Errorf("without a host:\n%s", text)
	}
	vxlan := func(name string) map[string]any { return g.tables("show", "vxlan", name)[0].Rows[0] }
	if got := vxlan("nic"); got["vxlan_offload"] != "Enabled" || got["udp_port"] != "4789" {
		t.Errorf("VXLAN: %v", got)
	}
	set := func(key, value string) {
		if _, err := client.Set(t.Context(), "nic", key, value); err != nil {
			t.Fatal(err)
		}
	}
	set("*VxlanUDPPortNumber", "8472")
	if got := vxlan("other"); got["vxlan_offload"] != `Disabled: "nic", the other port of the device, has UDP port 8472` || got["udp_port"] != "4789" {
		t.Errorf("VXLAN of the other port of the device: %v", got)
	}
	set("*EncapsulatedPacketTaskOffloadVxlan", "0")
	if got := vxlan("nic"); got["vxlan_offload"] != "Disabled" || got["udp_port"] != "8472" {
		t.Errorf("VXLAN off, at another port: %v", got)
	}
	if got := vxlan("left"); !strings.Contains(fmt.Sprint(got), "no Ethernet function") {
		t.Errorf("VXLAN without a host: %v", got)
	}
	if status, _, _ := g.call("show", "packet-filter", "nic", "x"); status != tool.Usage {
		t.Errorf("with another argument: status %d, want %d", status, tool.Usage)
	}
}
