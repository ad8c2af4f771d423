package administration

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// TestParsePrefixRoutes: the file of prefix routes has the form of opensm(8), "PREFIX ROUTES"; an error names the
// line and what is wanted.
func TestParsePrefixRoutes(t *testing.T) {
	got, err := ParsePrefixRoutes("# routers\n\n0xfec0000000000001 0x2c90200000001 # one\nfec0000000000002 *\n* *\n")
	want := []PrefixRoute{{Prefix: 0xfec0000000000001, Router: 0x2c90200000001}, {Prefix: 0xfec0000000000002, AnyRouter: true},
		{AnyPrefix: true, AnyRouter: true}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("parsed %+v (%v), want %+v", got, err, want)
	}
	for text, line := range map[string]int{"\n0x1": 2, "1 2 3": 1, "x *": 1, "* 0x10000000000000000": 1} {
		var e *routeError
		if _, err := ParsePrefixRoutes(text); !errors.As(err, &e) || e.Line != line || !strings.Contains(err.Error(), "want") {
			t.Errorf("%q: error %v, want one about line %d", text, err, line)
		}
	}
}

func FuzzParsePrefixRoutes(f *testing.F) {
	f.Add("0xfec0000000000001 0x2c90200000001\n* *")
	f.Fuzz(func(t *testing.T, text string) {
		routes, err := ParsePrefixRoutes(text)
		if err == nil && len(routes) > strings.Count(text, "\n")+1 {
			t.Errorf("parsed %d routes, more than there are lines", len(routes))
		}
	})
}

// TestPathsToOtherSubnets: a path to a GID of another subnet leads to the router that the first matching line names
// and that exists. The destination GID stays, and the hop limit lets routers forward. Without such a line the request
// fails.
func TestPathsToOtherSubnets(t *testing.T) {
	ask := func(routes string, prefix uint64) (uint16, mad.PathRecord, [2]ib.LID) {
		t.Helper()
		r, err := ParsePrefixRoutes(routes)
		if err != nil {
			t.Fatal(err)
		}
		var routers [2]int32
		b, h := plug(t, Config{PrefixRoutes: r}, func(b *bench, s1 int32) {
			for i, name := range []string{"r1", "r2"} {
				x := b.node(name, mad.NodeRouter, 2)
				b.link(x, 1, s1, uint8(5+i))
				routers[i] = x + 1
				b.n.Ports[x+1].GUID = uint64(0x701 + 0x10*i)
			}
		})
		dgid := ib.GID{15: 9}
		for i := range 8 {
			dgid[i] = byte(prefix >> (56 - 8*i))
		}
		path := mad.PathRecord{DGID: dgid, SGID: b.gid(h[2])}
		head, data := b.Ask(mad.MethodGet, mad.AttrPathRecord, mad.PathDGID|mad.PathSGID, path.Append(nil))
		got, err := mad.ParsePathRecord(data)
		if head.Status == 0 && (err != nil || got.DGID != dgid || got.HopLimit != 255) {
			t.Errorf("%s: the path is %+v, %v", routes, got, err)
		}
		return head.Status, got, [2]ib.LID{b.lid(routers[0]), b.lid(routers[1])}
	}
	for _, c := range []struct {
		routes string
		prefix uint64
		router int // -1: refused
	}{
		{"", 0xfec0000000000001, -1},
		{"fec0000000000001 701", 0xfec0000000000001, 0},
		{"fec0000000000001 711", 0xfec0000000000001, 1},
		{"fec0000000000001 999\nfec0000000000001 711", 0xfec0000000000001, 1}, // the first does not exist
		{"fec0000000000002 701", 0xfec0000000000001, -1},
		{"fec0000000000002 701\n* 711", 0xfec0000000000001, 1},
		{"* *", 0xfec0000000000077, 0},
		{"* 301", 0xfec0000000000077, -1}, // not a router
	} {
		status, path, lids := ask(c.routes, c.prefix)
		if c.router < 0 {
			if status != mad.SAInvalidGID {
				t.Errorf("%q: status %#x, %+v; want an invalid GID", c.routes, status, path)
			}
			continue
		}
		if status != 0 || path.DLID != lids[c.router] {
			t.Errorf("%q: status %#x, DLID %d, want %d", c.routes, status, path.DLID, lids[c.router])
		}
	}
}
