package fabric

import (
	"bytes"
	"errors"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/fabric"
	"github.com/softvpi/softvpi/internal/tools/tool"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// Our ibstat prints the same as Debian's for every kind of node, with all of its ports.
func TestIbstat(t *testing.T) {
	t.Parallel()
	d := newDatagrams(t, "ibstat")
	d.manage()
	for _, node := range []string{"hca1", "hca4", "sw1"} {
		for _, args := range []string{"", "-s", "-l", "-p", "softvpi0", "softvpi0 1", "softvpi0 0", "softvpi0 2", "softvpi0 9"} {
			c := d.at(node, "ibstat", strings.Fields(args)...)
			var want bytes.Buffer
			c.Stdout = &want
			err := c.Run()
			var failed *exec.ExitError
			if err != nil && !errors.As(err, &failed) {
				t.Fatal(err)
			}
			got, _, status := d.own(nil, node, "ibstat", strings.Fields(args)...)
			if diff := cmp.Diff(want.String(), got); diff != "" || (status != 0) != (err != nil) {
				t.Errorf("ibstat %s at %s: status %d, Debian's %v (-theirs +ours)\n%s", args, node, status, err, diff)
			}
		}
	}
}

// setPKeys sets the P_Key table of a node's first port.
func (d *datagrams) setPKeys(node int, keys ...ib.PKey) {
	d.t.Helper()
	var table mad.PKeyTable
	copy(table[:], keys)
	m := mad.NewSMP(mad.MethodSet, mad.AttrPKeyTable, 0, 1)
	table.Append(m.Data[:0])
	d.rack.Do(func(now clock.Time, f *fabric.Fabric) {
		at := fabric.Place{Node: node, Port: 1}
		p := fabric.Packet{DLID: f.PortInfo(at).LID}
		m.Append(p.MAD[:0])
		if o := f.Send(now, at, &p); o.Result != fabric.Answered {
			d.t.Errorf("P_KeyTable of node %d: %v", node, o)
		}
	})
}

// Our programs and Debian's send requests with the P_Key at index 0. So limited members of a partition reach the
// subnet manager, which is a full member, but not each other; and members of different partitions cannot reach each
// other.
func TestPartitionsOfTools(t *testing.T) {
	t.Parallel()
	d := newDatagrams(t, "saquery", "ibping")
	d.manage()
	const hca2, hca3 = 1, 2
	lid := func(node int) (text string) {
		d.rack.Do(func(_ clock.Time, f *fabric.Fabric) {
			text = strconv.Itoa(int(f.PortInfo(fabric.Place{Node: node, Port: 1}).LID))
		})
		return text
	}
	for _, c := range []struct {
		name          string
		theirs, other ib.PKey // keys of hca2, and of hca3
		asks, pings   bool
	}{
		{"full members", 0xffff, 0xffff, true, true}, {"limited members", 0x7fff, 0x7fff, true, false},
		{"a limited and a full one", 0x7fff, 0xffff, true, true},
		{"another partition", 0x8001, 0xffff, false, false}, {"another partition, both in it", 0x8001, 0x8001, false, true},
	} {
		d.setPKeys(hca2, c.theirs)
		d.setPKeys(hca3, c.other)
		limit := map[bool]string{true: "30000", false: "300"} // in milliseconds; an answer that is to come may be late
		ping := []string{"-c", "1", "-t", limit[c.pings], "-L", lid(hca3)}
		ask := []string{"-t", limit[c.asks], "CPI"}
		_, err := d.at("hca2", "saquery", ask...).Output()
		_, _, status := d.own(nil, "hca2", "saquery", ask...)
		if (err == nil) != c.asks || (status == 0) != c.asks {
			t.Errorf("%s: saquery of Debian: %v, ours: status %d", c.name, err, status)
		}
		theirs, _ := d.at("hca2", "ibping", ping...).Output()
		ours, _, _ := d.own(nil, "hca2", "ibping", ping...)
		for _, out := range []string{string(theirs), ours} {
			if strings.Contains(out, "Pong from") != c.pings {
				t.Errorf("%s: %s", c.name, out)
			}
		}
	}
}

// A tool uses the adapter's port that it is told to use: by -P, -p, or IBDIAG_PORT_NUM.
func TestPortOfTools(t *testing.T) {
	t.Parallel()
	d := newDatagrams(t, "smpquery")
	d.manage()
	for port, to := range map[string]struct{ name, guid string }{"1": {"sw2", "0x0002c90200002001"}, "2": {"sw1", "0x0002c90200002000"}} {
		args := []string{"-P", port, "-D", "nodedesc", "0," + port}
		want, err := d.at("hca4", "smpquery", args...).Output()
		got, _, status := d.own(nil, "hca4", "smpquery", args...)
		if err != nil || status != 0 || string(want) != got || !strings.Contains(got, to.name) {
			t.Errorf("smpquery %q: %v %q, ours %d %q", args, err, want, status, got)
		}
		first := func(out string) (line string) {
			for l := range strings.Lines(out) {
				if strings.Contains(l, "From:") || strings.Contains(l, "Using port") {
					line += l
				}
			}
			return line
		}
		byOption, _, status := d.own(nil, "hca4", "ibdiagpath", "-p", port, "-d", port, "-o", d.dir)
		if status != 0 || !strings.Contains(byOption, "Using port "+port) || !strings.Contains(byOption, to.guid) {
			t.Errorf("ibdiagpath -p %s: status %d\n%s", port, status, byOption)
		}
		byVariable, _, status := d.own([]string{"IBDIAG_PORT_NUM=" + port}, "hca4", "ibdiagpath", "-d", port, "-o", d.dir)
		if status != 0 || first(byVariable) != first(byOption) {
			t.Errorf("IBDIAG_PORT_NUM=%s: status %d\n%s", port, status, byVariable)
		}
	}
	if _, _, status := d.own(nil, "hca4", "ibdiagpath", "-p", "3", "-d", "1"); status != tool.Usage {
		t.Errorf("a port that is not there: status %d", status)
	}
}
