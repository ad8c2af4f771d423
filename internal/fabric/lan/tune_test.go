package lan

import (
	"strings"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/fabric/ethernet"
)

// pressed sends two to one for a time, and returns what the receiver's port did meanwhile.
func pressed(b *bench, from, to *Jack) (marked, dropped, pauses uint64) {
	at := ethernet.End{Node: 2, Port: 1}
	in := ethernet.End{Node: 2, Port: 0}
	x, y := b.State(b.now, at), b.State(b.now, in)
	b.flood(from, to, 20*time.Millisecond)
	s, t := b.State(b.now, at), b.State(b.now, in)
	return s.Marked - x.Marked, s.QueueDrops - x.QueueDrops, t.PausesSent - y.PausesSent
}

// Thresholds of marks, pauses and queues, and PFC, act from the next frame on, while frames wait.
func TestSettingsChangeWhileItRuns(t *testing.T) {
	b := star(t, true, ethernet.PortConfig{}, 4e9, 1e9)
	from, to := b.plug("h0"), b.plug("h1")
	b.do("pfc h0 3")
	b.learned(from, to)
	b.do("set s all most=200KB")
	if m, d, p := pressed(b, from, to); m != 0 || d == 0 || p != 0 {
		t.Errorf("without marks and pauses: %d marked, %d dropped, %d pauses", m, d, p)
	}
	b.do("set s[2] 3 kmin=20KB kmax=100KB pmax=10%")
	if m, d, p := pressed(b, from, to); m == 0 || d == 0 || p != 0 {
		t.Errorf("with marks: %d marked, %d dropped, %d pauses", m, d, p)
	}
	b.do("set s[2] 3 kmin=0 kmax=0 pmax=0%")
	b.do("set s[1] 3 xoff=60KB xon=20KB")
	b.do("pfc s[1] 3")
	b.flood(from, to, 5*time.Millisecond) // what waited drains to the threshold
	if m, d, p := pressed(b, from, to); m != 0 || d != 0 || p == 0 {
		t.Errorf("with PFC: %d marked, %d dropped, %d pauses", m, d, p)
	}
	if _, queued := b.fabric.Port(ethernet.End{Node: 2, Port: 1}).Queued(3); queued > 100e3 {
		t.Errorf("%d bytes wait, although the sender is paused at 60 KB", queued)
	}
	b.do("set s[1] 3 xoff=400KB")
	b.flood(from, to, 20*time.Millisecond)
	if _, queued := b.fabric.Port(ethernet.End{Node: 2, Port: 1}).Queued(3); queued < 300e3 {
		t.Errorf("%d bytes wait, although the sender is paused at 400 KB", queued)
	}
	b.do("pfc s[1] none")
	if _, d, p := pressed(b, from, to); d == 0 || p != 0 {
		t.Errorf("without PFC again: %d dropped, %d pauses", d, p)
	}
	settings := b.do("settings s[2]")
	for _, want := range []string{"priorities 0 to 7: weight 1; no marks; 200 KB may wait"} {
		if !strings.Contains(settings, want) {
			t.Errorf("settings are\n%s", settings)
		}
	}
}

// Wrong settings name themselves and what is allowed, and change nothing, at no port.
func TestWrongSettings(t *testing.T) {
	b := star(t, true, ethernet.PortConfig{FlowControl: ethernet.PriorityPause, Lossless: 8}, 1e9, 1e9)
	before := b.do("settings s[1]") + b.do("settings s[2]")
	for command, want := range map[string]string{
		"set s all kmin=200KB kmax=100KB":   "kmin is 200 KB and kmax 100 KB; allowed: kmin up to kmax",
		"set s all kmin=much":               `kmin "much"; allowed: bytes`,
		"set s all pmax=200%":               `pmax "200%"; allowed: 0% to 100%`,
		"set s all weight=101":              `weight "101"; allowed: 0 to 100`,
		"set s 8 weight=1":                  "0 to 7",
		"set s none weight=1":               "0 to 7",
		"set s 3 kmin":                      "NAME=VALUE",
		"set s 3 colour=red":                "NAME=VALUE with alpha",
		"set s[9] 3 weight=1":               "up to 2",
		"set x 3 weight=1":                  "none of the Ethernet",
		"set s 3":                           "2 arguments",
		"set s 3 xoff=0":                    "xoff",
		"set s 3 xoff_alpha=100":            "a share of the free buffer",
		"set s 3 headroom=1GB":              "less: the buffer has no room for that",
		"set s 3 weight=9 headroom=900MB":   "less: the buffer has no room for that",
		"set s 2,3 weight=9 most=-1KB":      "most",
		"set s 3 mark=sometimes":            "leaving or coming",
		"set s 3 strict=1":                  "true or false",
		"settings s[9]":                     "up to 2",
		"circle a,b,c":                      "one switch",
		"lldp h0":                           "a switch of the Ethernet, or all",
		"set s 3 kmin=99999999999999999999": "kmin",
	} {
		if _, _, err := b.Command(b.now, strings.Fields(command)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", command, err, want)
		}
	}
	if after := b.do("settings s[1]") + b.do("settings s[2]"); after != before {
		t.Errorf("changed from\n%sto\n%s", before, after)
	}
}

// Every setting of a scenario's priorities can be set by its name, and what was set is what is shown.
func TestSettingsByName(t *testing.T) {
	b := star(t, true, ethernet.PortConfig{FlowControl: ethernet.PriorityPause, Lossless: 8}, 1e9)
	for command, want := range map[string]string{
		"set s 3 headroom=50KB xoff_alpha=0.25": "priority 3: weight 1; no marks; pauses at 0.25 of the free buffer until 18.468 KB less, headroom 50 KB",
		"set s 4 strict=true":                   "priority 4: strict; no marks; 1 of the free buffer may wait",
		"set s 5 weight=7 alpha=0.5":            "priority 5: weight 7; no marks; 0.5 of the free buffer may wait",
		"set s 6 mark=coming kmin=5 kmax=10KB":  "priority 6: weight 1; marks from 5 KB on, 0% at 10 KB, all above; 1 of the free buffer may wait",
	} {
		if b.do(command); !strings.Contains(b.do("settings s[1]"), want) {
			t.Errorf("%s: settings are\n%s", command, b.do("settings s[1]"))
		}
	}
}
