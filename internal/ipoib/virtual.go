package ipoib

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/softvpi/softvpi/wire/ib"
)

// MaxVirtualPorts is how many virtual ports a port may have (WinOF 5.50, 5.2).
const MaxVirtualPorts = 32

// maxIName limits the name of a virtual port in bytes. The manual has no limit.
const maxIName = 63

// CheckIName checks the name of a virtual port: it must begin with an i, and consist of printable
// characters other than ':', ',', ';', '-' and space (WinOF 5.50, 5.2). The error is a *ConfigError.
func CheckIName(name string) error {
	bad := strings.IndexFunc(name, func(r rune) bool { return strings.ContainsRune(":,;- ", r) || !unicode.IsPrint(r) })
	if !strings.HasPrefix(name, "i") || bad >= 0 || len(name) > maxIName {
		return &ConfigError{"iname", strconv.Quote(name), fmt.Sprintf("printable characters without ':', ',', ';', '-' and space, beginning with an i, at most %d bytes", maxIName)}
	}
	return nil
}

// ParsePKey parses a P_Key as part_man accepts it: four hexadecimal digits. The error is a *ConfigError.
func ParsePKey(s string) (ib.PKey, error) {
	n, err := strconv.ParseUint(s, 16, 16)
	if err != nil || len(s) != 4 || !ib.PKey(n).Valid() {
		return 0, &ConfigError{"pkey", strconv.Quote(s), "4 hexadecimal digits, 0001 to 7FFF for limited members, 8001 to FFFF for full ones"}
	}
	return ib.PKey(n), nil
}
