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

// maxIName bounds the name of a virtual port in bytes. The manual has no bound.
const maxIName = 63

// CheckIName says what is wrong with the name of a virtual port: it begins with an i, and holds printable characters without
// ':', ',', ';', '-' and space (WinOF 5.50, 5.2). The error is a *ConfigError.
func CheckIName(name string) error {
	bad := strings.IndexFunc(name, func(r rune) bool { return strings.ContainsRune(":,;- ", r) || !unicode.IsPrint(r) })
	if !strings.HasPrefix(name, "i") || bad >= 0 || len(name) > maxIName {
		return &ConfigError{"iname", strconv.Quote(name), fmt.Sprintf("printable characters without ':', ',', ';', '-' and space, beginning with an i, at most %d bytes", maxIName)}
	}
	return nil
}

// ParsePKey reads a P_Key as part_man takes it: four hexadecimal digits. The error is a *ConfigError.
func ParsePKey(s string) (ib.PKey, error) {
	n, err := strconv.ParseUint(s, 16, 16)
	if err != nil || len(s) != 4 || !ib.PKey(n).Valid() {
		return 0, &ConfigError{"pkey", strconv.Quote(s), "4 hexadecimal digits, 0001 to 7FFF for limited members, 8001 to FFFF for full ones"}
	}
	return ib.PKey(n), nil
}
