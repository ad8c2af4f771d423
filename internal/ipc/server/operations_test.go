package server

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/ipc/proto"
)

// TestServedOperationsAreDescribed: docs/spec/ipc.md lists every operation that the driver serves, and the header of the C
// libraries has its number by its name.
func TestServedOperationsAreDescribed(t *testing.T) {
	read := func(path string) string {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	text, header := read("../../../docs/spec/ipc.md"), read("../../../clib/ipc/layouts.h")
	for op, f := range handlers {
		if f == nil {
			continue
		}
		if !strings.Contains(text, fmt.Sprintf("\n| %d | ", op)) {
			t.Errorf("operation %d is not in the document", op)
		}
		if line := fmt.Sprintf("\tSVPI_%v = %d,\n", proto.Opcode(op), op); !strings.Contains(header, line) {
			t.Errorf("the header has no line %q", line)
		}
	}
}
