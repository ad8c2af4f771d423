package administration

import (
	"reflect"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// policyExample is the example of OpenSM's QoS_management_in_OpenSM.txt, 6, with its equivalences.
const policyExample = `
qos-ulps
    default                       : 9 # default SL
    sdp, port-num 30000           : 10 # one port
    sdp, port-num 10000-20000     : 11
    sdp                           : 1
    rds                           : 2
    iser, port-num 900            : 12
    iser                          : 3
    ipoib, pkey 0x0001            : 13
    ipoib                         : 4
    any, service-id 0x6234        : 6
    any, pkey 0x0ABC              : 6
    srp, target-port-guid 0x1234  : 5
    any, target-port-guid 0x1000-0x1fff, 0x3000 : 14
    any, source-port-guid 0x5678  : 7
    any, source-target-port-guid 0x9abcd : 8
end-qos-ulps
`

func TestQoSPolicy(t *testing.T) {
	p, err := ParseQoSPolicy(policyExample)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name     string
		mask     uint64
		service  uint64
		key      ib.PKey
		from, to uint64
		want     uint8
	}{
		{"nothing", 0, 0, 0, 1, 2, 9},
		{"SDP port 30000", mad.PathServiceID8 | mad.PathServiceID56, 0x10000 + 30000, 0, 1, 2, 10},
		{"SDP port 15000", mad.PathServiceID8 | mad.PathServiceID56, 0x10000 + 15000, 0, 1, 2, 11},
		{"SDP", mad.PathServiceID8 | mad.PathServiceID56, 0x1ffff, 0, 1, 2, 1},
		{"SDP, but the service ID is no component", 0, 0x1ffff, 0, 1, 2, 9},
		{"RDS", mad.PathServiceID8 | mad.PathServiceID56, 0x10648ca, 0, 1, 2, 2},
		{"iSER port 900", mad.PathServiceID8 | mad.PathServiceID56, 0x1060000 + 900, 0, 1, 2, 12},
		{"iSER", mad.PathServiceID8 | mad.PathServiceID56, 0x1060cbc, 0, 1, 2, 3},
		{"IPoIB of a partition", mad.PathPKey, 0, 0x8001, 1, 2, 13},
		{"IPoIB", mad.PathPKey, 0, 0xffff, 1, 2, 4},
		{"service ID", mad.PathServiceID8 | mad.PathServiceID56, 0x6234, 0, 1, 2, 6},
		{"P_Key", mad.PathPKey, 0, 0x0abc, 1, 2, 6},
		{"SRP", 0, 0, 0, 1, 0x1234, 5},
		{"target", 0, 0, 0, 1, 0x1fff, 14},
		{"second target", 0, 0, 0, 1, 0x3000, 14},
		{"source", 0, 0, 0, 0x5678, 2, 7},
		{"source or target", 0, 0, 0, 1, 0x9abcd, 8},
		{"source or target", 0, 0, 0, 0x9abcd, 1, 8},
	} {
		w := &wish{mask: c.mask}
		w.rec.ServiceID, w.rec.PKey = c.service, c.key
		if got := p.level(w, c.from, c.to); got != c.want {
			t.Errorf("%s: service level %d, want %d", c.name, got, c.want)
		}
	}
	for line, want := range map[string]string{
		"qos-levels\nend-qos-levels":          `line 1: "qos-levels", want qos-ulps`,
		"qos-ulps\n":                          "want end-qos-ulps",
		"qos-ulps\ndefault: 16\n":             "a service level, 0 to 15",
		"qos-ulps\ndefault\n":                 "a service level, 0 to 15",
		"qos-ulps\nmpi : 1\n":                 "want default, sdp, rds",
		"qos-ulps\nsrp : 1\n":                 "want default, sdp, rds",
		"qos-ulps\nsdp, port-num x : 1\n":     "numbers behind port-num",
		"qos-ulps\nany, pkey : 1\n":           "numbers behind pkey",
		"qos-ulps\nany, service-id 9-2 : 1\n": "numbers behind service-id",
		"qos-ulps\ndefault: 1\ndefault: 2\n":  "one default",
	} {
		if _, err := ParseQoSPolicy(line); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", line, err, want)
		}
	}
	if p, err := ParseQoSPolicy("qos-ulps\nend-qos-ulps\n"); err != nil || !reflect.DeepEqual(p, &QoSPolicy{}) {
		t.Errorf("an empty policy: %+v, %v", p, err)
	}
}

// TestPathsByQoSPolicy: path records have the service level that the policy gives, and none is found for another
// level.
func TestPathsByQoSPolicy(t *testing.T) {
	policy, err := ParseQoSPolicy("qos-ulps\ndefault: 2\nany, service-id 0x77: 5\nend-qos-ulps\n")
	if err != nil {
		t.Fatal(err)
	}
	b, h := plug(t, Config{Policy: policy})
	want := mad.PathRecord{SLID: b.LID, DLID: b.lid(h[2]), NumPath: 1}
	ask := func(mask uint64) (uint16, uint8) {
		head, data := b.Ask(mad.MethodGet, mad.AttrPathRecord, mad.PathSLID|mad.PathDLID|mad.PathNumPath|mask, want.Append(nil))
		r, _ := mad.ParsePathRecord(data)
		return head.Status, r.SL
	}
	if status, sl := ask(0); status != 0 || sl != 2 {
		t.Errorf("status %#x, service level %d, want 2", status, sl)
	}
	want.ServiceID = 0x77
	if status, sl := ask(mad.PathServiceID8 | mad.PathServiceID56); status != 0 || sl != 5 {
		t.Errorf("status %#x, service level %d, want 5", status, sl)
	}
	want.SL = 3
	if status, _ := ask(mad.PathSL); status != mad.SANoRecords {
		t.Errorf("status %#x for another service level", status)
	}
}

func FuzzParseQoSPolicy(f *testing.F) {
	f.Add(policyExample)
	f.Add("qos-ulps\nany, service-id 1-2,3 : 4\nend-qos-ulps")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParseQoSPolicy(text)
		if err != nil {
			return
		}
		if sl := p.level(&wish{mask: ^uint64(0)}, 1, 2); sl > 15 {
			t.Errorf("service level %d, want at most 15", sl)
		}
	})
}
