package resource

import (
	"slices"
	"strings"
	"testing"
)

// TestBatch: what is written of counters is read again, and is text; what is cut off is refused.
func TestBatch(t *testing.T) {
	values := []uint64{7, 1 << 40, 0}
	file := Batch(0x5f01, 2, 1, values)
	parts, err := Read(file)
	if err != nil {
		t.Fatal(err)
	}
	p := parts[len(parts)-1]
	if p.Type != Monitoring || p.Index1 != 2 || p.Index2 != 1 || !slices.Equal(p.Batch, values) {
		t.Errorf("%+v is read", p)
	}
	if text := string(Text(parts)); !strings.Contains(text, "\tVF 1 FwCpuUsage: 7\n\tVF 2 FwCpuUsage: 1099511627776\n\tVF 3 FwCpuUsage: 0\n") {
		t.Errorf("the text is %q", text)
	}
	file[len(Batch(0, 0, 0, nil))-9]++ // the number of values
	if _, err := Read(file); err == nil {
		t.Error("a batch with a wrong number of values is read")
	}
}
