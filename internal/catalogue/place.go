package catalogue

import (
	"fmt"
	"strconv"
	"strings"
)

// Base is the root of a key's path. A smaller value is a more specific place.
type Base uint8

const (
	// AdapterClass is a network adapter's own key:
	// HKLM\SYSTEM\CurrentControlSet\Control\Class\{4d36e972-e325-11ce-bfc1-08002be10318}\<nn>.
	AdapterClass Base = iota
	// DeviceClass is the key of the adapter's device among the system devices (WinOF: the HCA):
	// HKLM\SYSTEM\CurrentControlSet\Control\Class\{4d36e97d-e325-11ce-bfc1-08002be10318}\<nn>.
	DeviceClass
	// DriverService is HKLM\SYSTEM\CurrentControlSet\Services\<driver>\Parameters, where <driver> is mlx4_bus or
	// mlx5.
	DriverService
	// Absolute means that Path is the complete path below HKLM.
	Absolute
)

const (
	classes      = `SYSTEM\CurrentControlSet\Control\Class\`
	services     = `SYSTEM\CurrentControlSet\Services\`
	networkClass = `{4d36e972-e325-11ce-bfc1-08002be10318}`
	systemClass  = `{4d36e97d-e325-11ce-bfc1-08002be10318}`
)

// Driver returns the name of a generation's driver service.
func (g Generation) Driver() string {
	if g == MLX4 {
		return "mlx4_bus"
	}
	return "mlx5"
}

// Place is a key of the registry, parsed from a path.
type Place struct {
	Base Base
	// Number is the <nn> of AdapterClass and DeviceClass.
	Number int
	// Generation is that of DriverService's driver, 0 for the other bases.
	Generation Generation
	// Path is the rest of the path below Base.
	Path string
}

// pathError says that a path is not one of the registry's.
type pathError struct {
	Path, Reason string
}

func (e *pathError) Error() string {
	return fmt.Sprintf("registry path %q: %s", e.Path, e.Reason)
}

// maxPath is the maximum length of a path in bytes; a key's name may have 255 characters (Windows).
const maxPath = 4096

// ParsePath parses a full path: HKLM or HKEY_LOCAL_MACHINE, then the keys, separated by backslashes, all
// in any letter case. Errors are *pathError.
func ParsePath(s string) (Place, error) {
	if len(s) > maxPath {
		return Place{}, &pathError{s[:64] + "...", fmt.Sprintf("%d bytes long; allowed: up to %d", len(s), maxPath)}
	}
	root, rest, _ := strings.Cut(strings.TrimSuffix(s, `\`), `\`)
	if !strings.EqualFold(root, "HKLM") && !strings.EqualFold(root, "HKEY_LOCAL_MACHINE") {
		return Place{}, &pathError{s, `does not begin with HKLM\ or HKEY_LOCAL_MACHINE\`}
	}
	for part := range strings.SplitSeq(rest, `\`) {
		if part == "" && rest != "" || strings.ContainsFunc(part, func(r rune) bool { return r < ' ' }) {
			return Place{}, &pathError{s, "has an empty or unprintable key name"}
		}
	}
	if p, ok := classPlace(rest); ok {
		return p, nil
	}
	for _, g := range []Generation{MLX5, MLX4} {
		if below, ok := cutPath(rest, services+g.Driver()+`\Parameters`); ok {
			return Place{Base: DriverService, Generation: g, Path: below}, nil
		}
	}
	return Place{Base: Absolute, Path: rest}, nil
}

// classPlace parses the path of an adapter or device.
func classPlace(path string) (Place, bool) {
	for base, class := range []string{AdapterClass: networkClass, DeviceClass: systemClass} {
		below, ok := cutPath(path, classes+class)
		if !ok {
			continue
		}
		number, rest, _ := strings.Cut(below, `\`)
		n, err := strconv.ParseUint(number, 10, 16)
		if err != nil || len(number) > 4 {
			return Place{}, false
		}
		return Place{Base: Base(base), Number: int(n), Path: rest}, true
	}
	return Place{}, false
}

// cutPath removes prefix, complete keys in any letter case, from the front of path.
func cutPath(path, prefix string) (below string, ok bool) {
	if len(path) < len(prefix) || !strings.EqualFold(path[:len(prefix)], prefix) {
		return "", false
	}
	below = path[len(prefix):]
	if below == "" {
		return "", true
	}
	return strings.CutPrefix(below, `\`)
}

// String returns the full path as the manuals write it.
func (p Place) String() string {
	var root string
	switch p.Base {
	case AdapterClass:
		root = fmt.Sprintf(`%s%s\%04d`, classes, networkClass, p.Number)
	case DeviceClass:
		root = fmt.Sprintf(`%s%s\%04d`, classes, systemClass, p.Number)
	case DriverService:
		root = services + p.Generation.Driver() + `\Parameters`
	}
	return strings.TrimSuffix(`HKLM\`+strings.TrimPrefix(root+`\`+p.Path, `\`), `\`)
}

// Place returns where the key's value is stored, for an adapter with that number and generation g.
func (k Key) Place(g Generation, number int) Place {
	p := Place{Base: k.Base, Path: k.Path}
	switch k.Base {
	case AdapterClass, DeviceClass:
		p.Number = number
	case DriverService:
		p.Generation = g
	}
	return p
}

// In reports whether p is a place of the key's value, for any adapter.
func (k Key) In(p Place) bool {
	return k.Base == p.Base && strings.EqualFold(k.Path, p.Path) && (p.Base != DriverService || k.Generations&p.Generation != 0)
}
