package firmware

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/softvpi/softvpi/internal/catalogue"
)

// drawn draws an image that passes Check.
func drawn(t *rapid.T) Image {
	g := rapid.SampledFrom([]catalogue.Generation{catalogue.MLX4, catalogue.MLX5}).Draw(t, "generation")
	m := Factory(g)
	m.Version = Version{rapid.Uint16().Draw(t, "major"), rapid.Uint16().Draw(t, "minor"), rapid.Uint16().Draw(t, "sub")}
	m.PSID = rapid.StringMatching(`[A-Z0-9_]{1,16}`).Draw(t, "PSID")
	m.Name = rapid.StringMatching(`[!-~]{0,64}`).Draw(t, "name")
	m.GUID = rapid.Uint64().Draw(t, "GUID")
	m.MAC[0], m.MAC[5] = rapid.Byte().Draw(t, "first")&^1, rapid.Byte().Draw(t, "last")
	for _, p := range catalogue.ParametersFor(catalogue.ConfigTool, g) {
		if rapid.Bool().Draw(t, p.Name) {
			if m.Parameters == nil {
				m.Parameters = map[string]uint64{}
			}
			least, most := p.Limits(g)
			m.Parameters[p.Name] = rapid.SampledFrom([]uint64{least, most}).Draw(t, p.Name+"'s value")
		}
	}
	return m
}

func TestCodec_Property(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawn(t)
		if err := m.Check(); err != nil {
			t.Fatal(err)
		}
		got, err := Decode(m.Encode())
		if err != nil || !reflect.DeepEqual(got, m) {
			t.Fatalf("decoded as %+v, %v; want %+v", got, err, m)
		}
	})
}

// A configuration that was written says the same of any other image for that device.
func TestINI_Property(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawn(t)
		written := string(m.INI())
		other := Factory(m.Generation)
		if err := other.ReadINI(written); err != nil {
			t.Fatalf("%v in\n%s", err, written)
		}
		if again := string(other.INI()); again != written {
			t.Fatalf("written as\n%s\nthen as\n%s", written, again)
		}
	})
}

// The manual's lines enable SR-IOV (WinOF 5.50, 4.5.3.4.1.2).
func TestINI_Manual(t *testing.T) {
	m := Factory(catalogue.MLX4)
	if err := m.ReadINI("; by hand\n[HCA]\nnum_pfs = 1\ntotal_vfs = 16\nsriov_en = true\n"); err != nil {
		t.Fatal(err)
	}
	if want := map[string]uint64{"SRIOV_EN": 1, "NUM_OF_VFS": 16}; !reflect.DeepEqual(m.Parameters, want) {
		t.Errorf("parameters are %v, want %v", m.Parameters, want)
	}
}

func TestINI_Refusals(t *testing.T) {
	for text, want := range map[string]string{
		"[HCA]\ntotal_vfs = 127":                       "line 2: NUM_OF_VFS is 127; allowed: 0 to 126",
		"[HCA]\nnum_pfs = 2":                           "line 2: num_pfs is 2; allowed: 1",
		"[HCA]\nnothing = 1":                           `line 2: name in [HCA] is "nothing"; allowed: sriov_en, total_vfs`,
		"[FLASH]":                                      "line 1: section is [FLASH]; allowed: [PS_INFO]",
		"[HCA]\ntotal_vfs":                             `line 2: "total_vfs" is no NAME = VALUE`,
		"[ADAPTER]\nPSID = mt_1":                       `line 2: PSID is "mt_1"; allowed: 1 to 16 capital letters`,
		"[ADAPTER]\nadapter_dev_id = 4115":             "line 2: adapter_dev_id is 4115; allowed: 4103",
		"[ADAPTER]\nbase_mac = 010000000000":           `line 2: MAC is "010000000000"`,
		"[PS_INFO]\nName = " + strings.Repeat("x", 65): "line 2: name is",
	} {
		m := Factory(catalogue.MLX4)
		m.Parameters = map[string]uint64{"SRIOV_EN": 1}
		before := m.Encode()
		if err := m.ReadINI("[HCA]\nsriov_en = false\n" + text); err == nil || !strings.Contains(err.Error(), shifted(want)) {
			t.Errorf("%q: %v, want %q", text, err, shifted(want))
		}
		if !bytes.Equal(m.Encode(), before) {
			t.Errorf("%q: the image was changed", text)
		}
	}
}

func TestINI_NoSection(t *testing.T) {
	m := Factory(catalogue.MLX4)
	if err := m.ReadINI("total_vfs = 1"); err == nil || err.Error() != "line 1: total_vfs stands before any section" {
		t.Error(err)
	}
}

// shifted is a message about a line that two others precede.
func shifted(s string) string {
	return strings.NewReplacer("line 1", "line 3", "line 2", "line 4").Replace(s)
}

// Whatever of a file is cut or changed, it is no image.
func TestDecode_Damage(t *testing.T) {
	m := Factory(catalogue.MLX5)
	file := m.Encode()
	for n := range file {
		if _, err := Decode(file[:n]); err == nil {
			t.Fatalf("the first %d bytes are an image", n)
		}
		bad := bytes.Clone(file)
		bad[n] ^= 0x10
		if _, err := Decode(bad); err == nil {
			t.Fatalf("an image with byte %d changed is one", n)
		}
	}
	if _, err := Decode(file[:len(file)-1]); !errors.Is(err, ErrChecksum) {
		t.Errorf("a cut file: %v, want %v", err, ErrChecksum)
	}
	if _, err := Decode([]byte("MTFW")); !errors.Is(err, ErrNoImage) {
		t.Errorf("another file: %v, want %v", err, ErrNoImage)
	}
}

func TestPorts(t *testing.T) {
	m := Image{GUID: 0x00ff, MAC: [6]byte{2, 0, 0, 0, 0xff, 0xff}}
	if m.PortGUID(2) != 0x100 || m.PortMAC(1) != m.MAC || m.PortMAC(2) != [6]byte{2, 0, 0, 1, 0, 0} {
		t.Errorf("port 2 has %x and %x", m.PortGUID(2), m.PortMAC(2))
	}
	if m = (Image{}); m.PortGUID(2) != 0 || m.PortMAC(2) != [6]byte{} {
		t.Error("a port has an address although the image has no base")
	}
}

func FuzzDecode(f *testing.F) {
	for _, g := range []catalogue.Generation{catalogue.MLX4, catalogue.MLX5} {
		m := Factory(g)
		m.Parameters = map[string]uint64{"SRIOV_EN": 1, "LINK_TYPE_P1": 1}
		f.Add(m.Encode()[:len(m.Encode())-sumSize])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _ = Decode(b)
		_, _ = Decode(sealed(b)) // else the checksum keeps all out
		if m, err := Decode(sealed(b)); err == nil && !bytes.Equal(m.Encode(), sealed(b)) {
			t.Errorf("%x is an image, which is written as %x", sealed(b), m.Encode())
		}
	})
}

func FuzzReadINI(f *testing.F) {
	f.Add("[HCA]\nnum_pfs = 1\ntotal_vfs = 16\nsriov_en = true\n")
	f.Add("[ADAPTER]\nPSID = X\nbase_guid = 0x2\nbase_mac = 02:00:00:00:00:01\n[PORT2]\nlink_type = 1\n")
	f.Fuzz(func(t *testing.T, s string) {
		m := Factory(catalogue.MLX5)
		if err := m.ReadINI(s); err == nil && m.Check() != nil {
			t.Errorf("%q makes an image that is not allowed: %v", s, m.Check())
		}
	})
}

// sealed returns a body with the length and the checksum that it should have.
func sealed(b []byte) []byte {
	if len(b) < headerSize {
		return b
	}
	return seal(bytes.Clone(b))
}
