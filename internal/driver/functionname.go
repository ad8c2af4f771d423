package driver

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/softvpi/softvpi/internal/api"
)

// mostFunctionName is the longest name of a virtual function: it is in the path of its socket.
const mostFunctionName = 31

// functionName returns why no virtual function can have a name, whatever others there are.
func functionName(name string) error {
	if name == "" || len(name) > mostFunctionName || strings.ContainsFunc(name, func(r rune) bool { return !plainName(r) }) ||
		strings.Trim(name, "-.") != name {
		return api.Wrong("name", strconv.Quote(name), fmt.Sprintf("letters, digits, and - _ . between them; at most %d", mostFunctionName))
	}
	return nil
}

// freeName returns why no virtual function can have a name, or none because another has it.
func (d *Driver) freeName(name string) error {
	if err := functionName(name); err != nil {
		return err
	}
	if d.functions.find(name) != nil {
		return api.Wrong("name", strconv.Quote(name), "one that no virtual function has, in capitals or not")
	}
	return nil
}

// plainName reports whether a name of a virtual function may have a character.
func plainName(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' || r == '.'
}
