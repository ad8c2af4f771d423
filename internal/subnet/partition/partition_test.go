package partition

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// manualPartitions is the examples of opensm(8).
const manualPartitions = `
Default=0x7fff : ALL, SELF=full ;
Default=0x7fff : ALL, ALL_SWITCHES=full, SELF=full ;

NewPartition , ipoib : 0x123456=full, 0x3456789034=limi,  0x2134af2306 ;

YetAnotherOne = 0x300 : SELF=full ;
YetAnotherOne = 0x300 : ALL=limited ;

ShareIO = 0x80 , defmember=full : 0x123451, 0x123452;
# 0x123453, 0x123454 will be limited
ShareIO = 0x80 : 0x123453, 0x123454, 0x123455=full;
ShareIO = 0x80 , defmember=full : 0x12345b, 0x12345c=limited, 0x12345d;
`

func TestPartitionExamplesOfTheManual(t *testing.T) {
	p, err := Parse(manualPartitions)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		guid uint64
		kind mad.NodeType
		self bool
		want []ib.PKey
	}{
		{1, mad.NodeCA, false, []ib.PKey{0x7fff, 0x0300}},
		{1, mad.NodeCA, true, []ib.PKey{0xffff, 0x8300}},
		{1, mad.NodeSwitch, false, []ib.PKey{0xffff, 0x0300}},
		{0x123456, mad.NodeCA, false, []ib.PKey{0x7fff, 0x8001, 0x0300}},
		{0x3456789034, mad.NodeCA, false, []ib.PKey{0x7fff, 0x0001, 0x0300}},
		{0x123452, mad.NodeCA, false, []ib.PKey{0x7fff, 0x0300, 0x8080}},
		{0x123454, mad.NodeCA, false, []ib.PKey{0x7fff, 0x0300, 0x0080}},
		{0x12345c, mad.NodeCA, false, []ib.PKey{0x7fff, 0x0300, 0x0080}},
		{0x12345d, mad.NodeCA, false, []ib.PKey{0x7fff, 0x0300, 0x8080}},
	} {
		if got := p.Keys(c.guid, c.kind, c.self, false); !slices.Equal(got, c.want) {
			t.Errorf("port %#x, %v, self %v: %04x, want %04x", c.guid, c.kind, c.self, got, c.want)
		}
	}
	if !p.List[1].IPoIB || p.List[1].Name != "NewPartition" {
		t.Errorf("second partition: %+v", p.List[1])
	}
}

func TestPartitionGroupsOfTheManual(t *testing.T) {
	p, err := Parse(`Default=0x7fff,ipoib:
	       mgid=ff12:401b::0707,sl=1 # random IPv4 group
	       mgid=ff12:601b::16    # MLDv2-capable routers
	       mgid=ff12::1,sl=1,Q_Key=0xDEADBEEF,rate=3,mtu=2 # random group
	       ALL=full;`)
	if err != nil {
		t.Fatal(err)
	}
	g := p.List[0].Groups
	if len(g) != 3 || g[0].MGID.String() != "ff12:401b:ffff:0000:0000:0000:0000:0707" || g[0].Flags.SL != 1 ||
		g[2].Flags.QKey != 0xdeadbeef || g[2].Flags.MTU != 2 || len(p.List[0].Members) != 1 {
		t.Errorf("the first partition is read as %+v", p.List[0])
	}
}

// TestDefaultPartition: without a rule for the default partition all ports are limited members of it; without any
// configuration they are full members.
func TestDefaultPartition(t *testing.T) {
	p, err := Parse("X=0x10 : ALL=both;")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		p          *Config
		self, both bool
		want       []ib.PKey
	}{
		{p, false, false, []ib.PKey{0x7fff, 0x8010}},
		{p, true, true, []ib.PKey{0xffff, 0x8010, 0x0010}},
		{Default(), false, false, []ib.PKey{0xffff}},
	} {
		if got := c.p.Keys(5, mad.NodeCA, c.self, c.both); !slices.Equal(got, c.want) {
			t.Errorf("%04x, want %04x", got, c.want)
		}
	}
}

func TestWrongPartitions(t *testing.T) {
	for text, want := range map[string]string{
		"A=0x10 ALL;":                         "line 1: there is no ':'",
		"A=0x10 : ALL":                        "line 1: the definition does not end with ';'",
		"\n\nA=0x8000 : ALL;":                 "line 3: P_Key \"0x8000\": want 0x0001 to 0x7fff",
		"A=0x10 :\n ALL,\n 0x12=most;":        "line 3: membership \"most\": want full, limited or both",
		"A=0x10 : everyone;":                  "port \"everyone\": want a port GUID",
		"A=0x10,fast : ALL;":                  "flag \"fast\": want indx0",
		"A=0x10,ipoib,mtu=9 : ALL;":           "mtu=9: want 1 to 5",
		"A=0x10 :\nmgid=fe80::1\n;":           "want a multicast GID",
		"A=0x10 :\nmgid=ff12:401b:8011::1\n;": "its P_Key 0x8011 is not that of the partition, 0x0010",
	} {
		_, err := Parse(text)
		var e *parseError
		if !errors.As(err, &e) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// TestFitKeys: whatever a table contained before, afterwards it contains just the keys, and those it had keep their
// places.
func TestFitKeys(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.Custom(func(t *rapid.T) ib.PKey {
			return ib.PKey(rapid.SampledFrom([]uint16{1, 2, 3, 4, 0x7fff}).Draw(t, "base") |
				rapid.SampledFrom([]uint16{0, 0x8000}).Draw(t, "full"))
		})
		table := make([]ib.PKey, 32)
		for i := range rapid.IntRange(0, 8).Draw(t, "entries") {
			table[i] = key.Draw(t, "old")
		}
		keys := rapid.SliceOfNDistinct(key, 0, 5, rapid.ID[ib.PKey]).Draw(t, "keys")
		first := rapid.Bool().Draw(t, "first")
		got, fits := Fit(table, keys, first, 32)
		if !fits {
			t.Fatal("it does not fit")
		}
		var held []ib.PKey
		for i, k := range got {
			if k != 0 {
				held = append(held, k)
			}
			if i > 0 && k != table[i] && k != 0 && slices.Contains(keys, table[i]) && !slices.Contains(table[:i], table[i]) && !first {
				t.Fatalf("%04x at %d gave way to %04x", table[i], i, k)
			}
		}
		slices.Sort(held)
		want := slices.Sorted(slices.Values(keys))
		if !slices.Equal(held, want) {
			t.Fatalf("%04x became %04x, want %04x", table, got, want)
		}
		if first && len(keys) > 0 && got[0] != keys[0] {
			t.Fatalf("%04x does not begin with %04x", got, keys[0])
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add(manualPartitions)
	f.Add("Default=0x7fff,ipoib:\n mgid=ff12:401b::0707,sl=1\n ALL=full;")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := Parse(text)
		if err == nil && len(p.List) == 0 {
			t.Fatal("a configuration without any partition was accepted")
		}
	})
}
