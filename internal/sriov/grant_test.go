package sriov

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/softvpi/softvpi/internal/catalogue"
)

// on is a port of Ethernet whose interface is allowed that many.
func on(allowed uint32) Port { return Port{Offered: true, Allowed: allowed} }

func mlx4(total uint32, mode PortMode, first, second uint32, ports ...Port) Device {
	return Device{Generation: catalogue.MLX4, Enabled: true, Permit: true, Total: total, Mode: mode, MaxVFPort: [2]uint32{first, second},
		Ports: ports}
}

func mlx5(total uint32, ports ...Port) Device {
	return Device{Generation: catalogue.MLX5, Enabled: true, Total: total, Ports: ports}
}

// TestGrants: the manuals' own examples and limits, and every reason for none.
func TestGrants(t *testing.T) {
	ib := on(16)
	ib.InfiniBand, ib.Rows = true, 32
	full := on(16)
	full.Wire = "UDP sockets have one function"
	closed := mlx5(16, Port{Allowed: 16})
	noEnable, noPermit := mlx5(16, on(16)), mlx4(16, Manual, 16, 16, on(16))
	noEnable.Enabled, noPermit.Permit = false, false
	for _, c := range []struct {
		name   string
		device Device
		want   []uint32
		cause  string
		is     Support
	}{
		{"WinOF-2, SRIOV_EN=1 NUM_OF_VFS=16 (Enabling SR-IOV in Firmware)", mlx5(16, on(Allowed)), []uint32{16}, "allows the port 16 of 32",
			Supported},
		{"WinOF-2, 32 for an interface until that is raised", mlx5(127, on(Allowed)), []uint32{32}, "", Supported},
		{"WinOF-2, raised to 127 per port", mlx5(127, on(127), on(127)), []uint32{127, 127}, "", Supported},
		{"WinOF-2, no more than 127", mlx5(200, on(200)), []uint32{127}, "allows the port 127 of 200", Supported},
		{"WinOF 4.6.9.1, 8 burnt, auto_port1, interface allowed 32", mlx4(8, AutoPort1, 16, 16, on(32), on(32)), []uint32{8, 0},
			"allows the port 8 of 32", Supported},
		{"WinOF, auto_port2", mlx4(8, AutoPort2, 16, 16, on(32), on(32)), []uint32{0, 8}, "SriovPortMode is 1: port 2 has all", Supported},
		{"WinOF 4.5.3.4.2, manual with 8 and 8 of 16", mlx4(16, Manual, 8, 8, on(32), on(32)), []uint32{8, 8}, "", Supported},
		{"WinOF 4.6.9.1, 16 and 16 of 16 are split", mlx4(16, Manual, 16, 16, on(32), on(32)), []uint32{8, 8}, "", Supported},
		{"WinOF, in proportion", mlx4(16, Manual, 24, 8, on(32), on(32)), []uint32{12, 4}, "", Supported},
		{"WinOF, in proportion without the rest", mlx4(10, Manual, 16, 8, on(32), on(32)), []uint32{6, 3}, "", Supported},
		{"WinOF, one port has no other's part", mlx4(16, Manual, 16, 16, on(32)), []uint32{16}, "", Supported},
		{"WinOF, the least of bus driver and interface", mlx4(16, Manual, 8, 8, on(4), on(32)), []uint32{4, 8}, "", Supported},
		{"WinOF, 126 for the device", mlx4(127, AutoPort1, 0, 0, on(127), on(127)), []uint32{126, 0}, "", Supported},
		{"not enabled", noEnable, []uint32{0}, "SRIOV_EN is 0", Unknown},
		{"not permitted", noPermit, []uint32{0}, "PermitSriov is 0", Unknown},
		{"WinOF, one port of InfiniBand", mlx4(16, Manual, 8, 8, on(16), ib), []uint32{0, 0}, "a port of the device is InfiniBand", Unknown},
		{"WinOF-2, the other port of InfiniBand", mlx5(16, on(16), ib), []uint32{16, 16}, "", Supported},
		{"as many as an InfiniBand port has GIDs", mlx5(127, Port{Offered: true, Allowed: 64, InfiniBand: true, Rows: 32}), []uint32{32},
			"allows the port 32 of 64", Supported},
		{"not offered", closed, []uint32{0}, "*SRIOV is 0", Unknown},
		{"none allowed", mlx5(16, on(0)), []uint32{0}, "*NumVFs is 0", Unknown},
		{"none of the device", mlx5(0, on(16)), []uint32{0}, "has none for the port", Supported},
		{"no room on the wire", mlx5(16, full), []uint32{0}, "UDP sockets", NoVfBarSpace},
	} {
		got := c.device.Grants()
		for i, n := range c.want {
			if got[i].VFs != n {
				t.Errorf("%s: port %d has %d virtual functions, want %d (%s)", c.name, i+1, got[i].VFs, n, got[i].Cause)
			}
		}
		if got[0].Support != c.is || c.cause != "" && !strings.Contains(got[0].Cause, c.cause) {
			t.Errorf("%s: %v because of %q, want %v because of %q", c.name, got[0].Support, got[0].Cause, c.is, c.cause)
		}
	}
}

// TestGrants_NoRoCE: in an auto mode the other port is native Ethernet (WinOF 5.50, 4.6.9.1); in manual mode no port is.
func TestGrants_NoRoCE(t *testing.T) {
	for mode, want := range map[PortMode][2]bool{AutoPort1: {false, true}, AutoPort2: {true, false}, Manual: {}} {
		d := mlx4(16, mode, 8, 8, on(16), on(16))
		for i, g := range d.Grants() {
			if g.NoRoCE != want[i] {
				t.Errorf("mode %d, port %d: NoRoCE %v, want %v", mode, i+1, g.NoRoCE, want[i])
			}
		}
	}
	if Unknown.String() != "Unknown" || NoVfBarSpace.String() != "NoVfBarSpace" || Support(9).String() != "Support(9)" {
		t.Error("the reasons have other names than the manuals print")
	}
}

// TestGrants_Bounds: whatever is configured, no port has more than it asked for, nor more than the limits; a port with fewer than it
// asked for says why; and both ports of WinOF's together have no more than their pool.
func TestGrants_Bounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := Device{
			Generation: rapid.SampledFrom([]catalogue.Generation{catalogue.MLX4, catalogue.MLX5}).Draw(t, "generation"),
			Enabled:    rapid.Bool().Draw(t, "enabled"), Permit: rapid.Bool().Draw(t, "permit"),
			Total: rapid.Uint32Range(0, 300).Draw(t, "total"), Mode: rapid.SampledFrom([]PortMode{AutoPort1, AutoPort2, Manual}).Draw(t, "mode"),
			MaxVFPort: [2]uint32{rapid.Uint32Range(0, 300).Draw(t, "first"), rapid.Uint32Range(0, 300).Draw(t, "second")},
		}
		for range rapid.IntRange(1, 2).Draw(t, "ports") {
			d.Ports = append(d.Ports, Port{Offered: rapid.Bool().Draw(t, "offered"), Allowed: rapid.Uint32Range(0, 300).Draw(t, "allowed"),
				InfiniBand: rapid.Bool().Draw(t, "infiniband"), Wire: rapid.SampledFrom([]string{"", "full"}).Draw(t, "wire")})
		}
		sum := uint32(0)
		for i, g := range d.Grants() {
			sum += g.VFs
			if g.VFs > MostPerPort || g.VFs > g.Requested || g.VFs > d.Total || g.VFs > 0 && g.Support != Supported {
				t.Fatalf("port %d: %+v", i, g)
			}
			if g.VFs < g.Requested && g.Cause == "" {
				t.Fatalf("port %d has %d of %d without a cause", i, g.VFs, g.Requested)
			}
		}
		if d.Generation == catalogue.MLX4 && sum > min(d.Total, MostPerDevice) {
			t.Fatalf("the ports have %d together, of %d", sum, d.Total)
		}
	})
}
