package counters

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var sample = []Reading{
	{"RDMA Activity", "Ethernet 1", "RDMA Active Connections", "connections", Number{Known: true, Whole: true, Integer: 1 << 63}},
	{"RDMA Activity", "Ethernet 1", "RDMA Inbound Bytes/sec", "bytes/s", Number{Known: true, Real: 12.5}},
	{"Mellanox Adapter QoS Counters", `"A", Priority 0`, "Bytes Sent", "bytes", Number{}},
}

func TestForms(t *testing.T) {
	at := time.Date(2026, 11, 20, 16, 51, 47, 123e6, time.UTC)
	for form, want := range map[Form]string{
		CSV: `"(PDH-CSV 4.0)","\\host\RDMA Activity(Ethernet 1)\RDMA Active Connections","\\host\RDMA Activity(Ethernet 1)\RDMA Inbound Bytes/sec","\\host\Mellanox Adapter QoS Counters(""A"", Priority 0)\Bytes Sent"
"11/20/2026 16:51:47.123","9223372036854775808.000000","12.500000"," "
"11/20/2026 16:51:48.123","9223372036854775808.000000","12.500000"," "
`,
		TSV: `"(PDH-TSV 4.0)"	"\\host\RDMA Activity(Ethernet 1)\RDMA Active Connections"	"\\host\RDMA Activity(Ethernet 1)\RDMA Inbound Bytes/sec"	"\\host\Mellanox Adapter QoS Counters(""A"", Priority 0)\Bytes Sent"
"11/20/2026 16:51:47.123"	"9223372036854775808.000000"	"12.500000"	" "
"11/20/2026 16:51:48.123"	"9223372036854775808.000000"	"12.500000"	" "
`,
	} {
		var b bytes.Buffer
		w := NewWriter(&b, form, "host")
		for i := range 2 {
			if err := w.Write(at.Add(time.Duration(i)*time.Second), sample); err != nil {
				t.Fatal(err)
			}
		}
		if d := cmp.Diff(want, b.String()); d != "" {
			t.Errorf("%s: (-want +got)\n%s", form, d)
		}
	}
}

// TestJSON: JSON keeps every digit, and has null for counters that are not counted.
func TestJSON(t *testing.T) {
	var b bytes.Buffer
	if err := NewWriter(&b, JSON, "host").Write(time.Now(), sample); err != nil {
		t.Fatal(err)
	}
	var l line
	if err := json.Unmarshal(b.Bytes(), &l); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(sample, l.Readings); d != "" || !strings.Contains(b.String(), `"value":null`) {
		t.Errorf("%s%s", b.String(), d)
	}
}

// TestColumnsStay: a column keeps its place when an instance disappears or a new one appears.
func TestColumnsStay(t *testing.T) {
	var b bytes.Buffer
	w := NewWriter(&b, CSV, "h")
	_ = w.Write(time.Time{}, sample[:2])
	_ = w.Write(time.Time{}, sample[1:])
	last := strings.Split(b.String(), "\n")[2]
	if !strings.HasSuffix(last, `," ","12.500000"`) {
		t.Error("the last row is ", last)
	}
}
