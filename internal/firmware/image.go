// Package firmware is what the flash of a software adapter's device holds: an image with the personality of the device
// (PSID, name, bases of its GUIDs and MACs) and the defaults of its non-volatile parameters, which mlxburn makes and
// flint burns. There is no code in an image: what a card's firmware does, the driver's engine does, whose version an
// image names.
//
// An image file is
//
//	 0  8  magic: 89 'S' 'V' 'F' 0d 0a 1a 0a
//	 8  2  version of the format, 1
//	10  2  zero
//	12  4  length of the body in bytes
//	16     body: records
//	       32 bytes, the SHA-256 of all before
//
// and a record is a tag (2 bytes), a length (2 bytes) and as many bytes. Numbers are big endian. Records are in the order
// of their tags, those of parameters in the order of their names, and each but for parameters occurs at most once, so
// that there is one file for each image.
package firmware

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/softvpi/softvpi/internal/catalogue"
)

// Version is the version of an engine: of what it knows that images may contain.
type Version struct{ Major, Minor, Sub uint16 }

func (v Version) String() string { return fmt.Sprintf("%d.%d.%04d", v.Major, v.Minor, v.Sub) }

// ParseVersion parses a version in the form of flint.
func ParseVersion(s string) (v Version, ok bool) {
	n, err := fmt.Sscanf(s, "%d.%d.%d", &v.Major, &v.Minor, &v.Sub)
	return v, err == nil && n == 3 && v.String() == s
}

// After reports whether v is later than w.
func (v Version) After(w Version) bool {
	return slices.Compare([]uint16{v.Major, v.Minor, v.Sub}, []uint16{w.Major, w.Minor, w.Sub}) > 0
}

// Engine is the version of this driver's engine, and Released the day on which it got it, in the form of flint.
var Engine = Version{1, 0, 1000}

const Released = "26.11.2026"

// Image is the content of a device's flash.
type Image struct {
	Version    Version // of the engine for which it was made
	Released   string  // that engine's day: 26.11.2026
	Generation catalogue.Generation
	// PSID identifies the kind of board: an image is only burned to a device with the same.
	PSID        string
	Name        string
	Description string
	// GUID and MAC are those of the first port; of a second one the next. 0: those that the adapters have otherwise.
	GUID uint64
	MAC  [6]byte
	// Parameters are the defaults of those of mlxconfig; what it sets precedes them.
	Parameters map[string]uint64
}

// Factory returns the image of a device that was never burned.
func Factory(g catalogue.Generation) Image {
	return Image{
		Version: Engine, Released: Released, Generation: g, PSID: fmt.Sprintf("SVP_%d000001", g.PartID()),
		Name: fmt.Sprintf("SoftVPI %d", g.PartID()), Description: "SoftVPI software VPI adapter, " + name(g),
	}
}

// name is how images call a generation.
func name(g catalogue.Generation) string {
	if g == catalogue.MLX4 {
		return "mlx4"
	}
	return "mlx5"
}

// FieldError says what is wrong with a part of an image.
type FieldError struct{ Field, Value, Allowed string }

func (e *FieldError) Error() string {
	return fmt.Sprintf("%s is %s; allowed: %s", e.Field, e.Value, e.Allowed)
}

// Limits of texts, in bytes.
const (
	maxName        = 64
	maxDescription = 128
)

var (
	psid     = regexp.MustCompile(`^[A-Z0-9_]{1,16}$`)
	released = regexp.MustCompile(`^[0-9]{1,2}\.[0-9]{1,2}\.[0-9]{4}$`)
)

// Check says what in an image is not allowed. Errors are *FieldError or *catalogue.ValueError.
func (m *Image) Check() error {
	switch {
	case !psid.MatchString(m.PSID):
		return &FieldError{"PSID", fmt.Sprintf("%q", m.PSID), "1 to 16 capital letters, digits and _"}
	case !released.MatchString(m.Released):
		return &FieldError{"release date", fmt.Sprintf("%q", m.Released), "a day such as " + Released}
	case !printable(m.Name, maxName):
		return &FieldError{"name", fmt.Sprintf("%q", m.Name), fmt.Sprintf("up to %d printable characters of ASCII", maxName)}
	case !printable(m.Description, maxDescription):
		return &FieldError{"description", fmt.Sprintf("%q", m.Description),
			fmt.Sprintf("up to %d printable characters of ASCII", maxDescription)}
	case m.MAC[0]&1 != 0:
		return &FieldError{"MAC", m.MACText(), "the address of one station, or 0"}
	case m.Generation != catalogue.MLX4 && m.Generation != catalogue.MLX5:
		return &FieldError{"device", fmt.Sprint(uint8(m.Generation)), "mlx4, mlx5"}
	}
	for _, n := range slices.Sorted(maps.Keys(m.Parameters)) {
		p, ok := parameter(n, m.Generation)
		if !ok || p.Name != n {
			return &FieldError{"parameter", fmt.Sprintf("%q", n), strings.Join(parameterNames(m.Generation), ", ")}
		}
		if err := p.Validate(m.Parameters[n], m.Generation); err != nil {
			return err
		}
	}
	return nil
}

func printable(s string, most int) bool {
	return len(s) <= most && !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' })
}

// parameter finds one of mlxconfig's parameters by its name, in any letter case.
func parameter(name string, g catalogue.Generation) (catalogue.Parameter, bool) {
	for _, p := range catalogue.ParametersFor(catalogue.ConfigTool, g) {
		if strings.EqualFold(p.Name, name) {
			return p, true
		}
	}
	return catalogue.Parameter{}, false
}

func parameterNames(g catalogue.Generation) (names []string) {
	for _, p := range catalogue.ParametersFor(catalogue.ConfigTool, g) {
		names = append(names, p.Name)
	}
	return names
}

// MACText and GUIDText are the bases in the form of flint; N/A if an image has none.
func (m *Image) MACText() string {
	if m.MAC == [6]byte{} {
		return "N/A"
	}
	return fmt.Sprintf("%x", m.MAC)
}

// GUIDText is like MACText.
func (m *Image) GUIDText() string {
	if m.GUID == 0 {
		return "N/A"
	}
	return fmt.Sprintf("%016x", m.GUID)
}

// PortGUID returns the GUID of a port, from 1; 0: the image has none.
func (m *Image) PortGUID(port int) uint64 {
	if m.GUID == 0 {
		return 0
	}
	return m.GUID + uint64(port-1)
}

// PortMAC is like PortGUID.
func (m *Image) PortMAC(port int) (mac [6]byte) {
	mac = m.MAC
	if mac == ([6]byte{}) {
		return mac
	}
	carry := uint(port - 1)
	for i := 5; i >= 0 && carry > 0; i-- {
		carry += uint(mac[i])
		mac[i], carry = byte(carry), carry>>8
	}
	return mac
}
