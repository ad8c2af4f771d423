package counters

import (
	"errors"
	"testing"
)

func TestParsePath(t *testing.T) {
	for text, want := range map[string]Path{
		`\RDMA Activity(Ethernet 1)\RDMA Inbound Bytes/sec`:       {"RDMA Activity", "Ethernet 1", "RDMA Inbound Bytes/sec"},
		`\\host\RDMA Activity(Ethernet 1)\RDMA Inbound Bytes/sec`: {"RDMA Activity", "Ethernet 1", "RDMA Inbound Bytes/sec"},
		`\RDMA Activity(*)\*`:                    {"RDMA Activity", "*", "*"},
		`\RDMA Activity\RDMA Active Connections`: {"RDMA Activity", "*", "RDMA Active Connections"},
		`RDMA Activity`:                          {"RDMA Activity", "*", "*"},
		`\RDMA Activity(port (left))\*`:          {"RDMA Activity", "port (left)", "*"},
		`\Mellanox WinOF Bus Counters(a)\CPU MEM-pages (4K) mapped by TPT for QP`: {
			"Mellanox WinOF Bus Counters", "a", "CPU MEM-pages (4K) mapped by TPT for QP",
		},
		`\Mellanox WinOF Bus Counters\CPU MEM-pages (4K) mapped by TPT for QP`: {
			"Mellanox WinOF Bus Counters", "*", "CPU MEM-pages (4K) mapped by TPT for QP",
		},
		`rdma_activity.inbound_bytes`:              {"rdma_activity", "*", "inbound_bytes"},
		`rdma_activity(Ethernet 1).inbound_bytes`:  {"rdma_activity", "Ethernet 1", "inbound_bytes"},
		`rdma_activity(eth1.100).inbound_bytes`:    {"rdma_activity", "eth1.100", "inbound_bytes"},
		`\Mellanox Adapter QoS Counters(*, P*3)\*`: {"Mellanox Adapter QoS Counters", "*, P*3", "*"},
	} {
		if got, err := ParsePath(text); err != nil || got != want {
			t.Errorf("%s: %+v, %v; want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"", `\`, `\\host`, `\(x)\y`, `\a()\y`, `\a(x)\`, `\x)\y`} {
		var e *PathError
		if _, err := ParsePath(text); !errors.As(err, &e) || len(e.Allowed) == 0 {
			t.Errorf("%q: %v, want an error with what is allowed", text, err)
		}
	}
}

func TestMatches(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"abc", "ABC", true},
		{"abc", "abcd", false},
		{"*", "", true},
		{"a*c", "abbbc", true},
		{"a*c", "ac", true},
		{"a*c", "acb", false},
		{"*b*", "abc", true},
		{"a*a", "a", false},
		{"ab*ba", "aba", false},
		{"*/sec", "Bytes/Sec", true},
		{"a*b*c", "axbxc", true},
		{"a*b*c", "axcxb", false},
	} {
		if got := matches(c.pattern, c.name); got != c.want {
			t.Errorf("%q matches %q: %v, want %v", c.pattern, c.name, got, c.want)
		}
	}
}

func FuzzParsePath(f *testing.F) {
	for _, s := range []string{`\RDMA Activity(Ethernet 1)\RDMA Inbound Bytes/sec`, `a(b).c`, `\\h\a(*)\*`, `)\`, `(\`, `\\`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, err := ParsePath(s)
		if err == nil && (p.Set == "" || p.Instance == "" || p.Counter == "") {
			t.Errorf("%q is read as %+v, in which a part is empty", s, p)
		}
	})
}
