package verbs

import (
	"regexp"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/bed/driverbed"
	"github.com/softvpi/softvpi/internal/driver"
)

// newFabricBench is a driver with two adapters whose ports are InfiniBand's, on a fabric of its own. path is that of the
// adapters: with wire every packet goes through the fabric.
func newFabricBench(t *testing.T, path string) *bench {
	t.Helper()
	needLibraries(t)
	cfg := driverbed.Config(t, driver.Adapter{Name: "left", Link: "cable", Path: path}, driver.Adapter{Name: "right", Link: "cable", Path: path})
	if d := driverbed.Start(t, cfg); d.NoAttach() != "" {
		t.Skip(d.NoAttach())
	}
	return benchOf(t, cfg)
}

// byLID is what programs do that have no GID to name: the options that name one are left out.
func byLID(pairs []pair) (out []pair) {
	gid := regexp.MustCompile(` -(g|x) 0`)
	for _, p := range pairs {
		if strings.Contains(p.server, " -M -g") {
			continue // it joins its group by umad, which is not the driver's
		}
		p.server, p.client = gid.ReplaceAllString(p.server, ""), gid.ReplaceAllString(p.client, "")
		out = append(out, p)
	}
	return out
}

// A port of a fabric is shown as one: its LID, its subnet manager, its partition, no RoCE.
func TestFabricDevices(t *testing.T) {
	b := newFabricBench(t, "")
	b.need("ibv_devinfo")
	out := b.run(nil, "ibv_devinfo", "-v", "-d", "softvpi1")
	for _, want := range []string{`hca_id:\s+softvpi1`, `state:\s+PORT_ACTIVE`, `link_layer:\s+InfiniBand`, `port_lid:\s+[1-9]`, `sm_lid:\s+[1-9]`,
		`phys_state:\s+LINK_UP`, `active_width:\s+4X`, `active_speed:\s+25.0 Gbps`, `pkey_tbl_len:\s+[1-9]`, `GID\[ *0\]:\s+fe80:`} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("ibv_devinfo does not print %s:\n%s", want, out)
		}
	}
	if strings.Contains(out, "RoCE") {
		t.Errorf("ibv_devinfo takes it for Ethernet:\n%s", out)
	}
}

// Programs name a peer by its LID alone, or by LID and GID with a GRH in every packet, beside the fabric and through it.
func TestFabricPingPong(t *testing.T) {
	for _, path := range []string{"", "wire"} {
		b := newFabricBench(t, path)
		t.Run("by LID "+path, func(t *testing.T) { b.under(t).talkAll(t, byLID(pingPongs())) })
		t.Run("by GID "+path, func(t *testing.T) { b.under(t).talkAll(t, pingPongs()) })
	}
}

// The programs of librdmacm: addresses are found, paths asked for and groups joined at the subnet administration.
func TestFabricConnectionManager(t *testing.T) {
	for _, path := range []string{"", "wire"} {
		newFabricBench(t, path).talkAll(t, managed())
	}
}

// perftest takes such ports as they are, without an index of a GID.
func TestFabricPerftest(t *testing.T) { newFabricBench(t, "wire").talkAll(t, byLID(perftests())) }
