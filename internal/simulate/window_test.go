package simulate

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/wire/ib"
)

// TestWindow: it is half of what was on the way at each loss, and grows by a packet for each window that arrives.
func TestWindow(t *testing.T) {
	var w window
	if w.grow(1000); w.size != 0 {
		t.Errorf("without losses the window is %d", w.size)
	}
	w.lost(41)
	sizes := []int64{w.size}
	for _, acked := range []int64{19, 1, 20, 1, 22 + 23} {
		w.grow(acked)
		sizes = append(sizes, w.size)
	}
	w.size = 50
	w.lost(7)
	sizes = append(sizes, w.size)
	w.lost(7)
	if got := fmt.Sprint(append(sizes, w.size)); got != "[20 20 21 21 22 24 25 16]" {
		t.Errorf("the window is %s", got)
	}
}

// TestShares_Lossy: classes that lose packets at their queues have their shares of the port all the same, of what arrives and not only of
// what is sent: half of it and half, and an eighth, a quarter and the rest.
func TestShares_Lossy(t *testing.T) {
	for _, c := range []struct {
		name, nic, weights, most string
		shares                   map[uint8]float64
	}{
		{"one loses", `"pfc": [3]`, "[50, 1, 1, 50, 1, 1, 1, 1]", "200KB", map[uint8]float64{0: .5, 3: .5}},
		{"all lose", `"pfc": []`, "[1, 10, 20, 50, 1, 1, 1, 1]", "200KB", map[uint8]float64{1: .125, 2: .25, 3: .625}},
	} {
		both(t, func(t *testing.T, lean bool) {
			text := ""
			for _, p := range slices.Sorted(maps.Keys(c.shares)) {
				text += fmt.Sprintf(`,{"kind": "incast", "priority": %d}`, p)
			}
			x := run(t, fmt.Sprintf(`{"topology": {"senders": 3}, "switch": {%s, "weights": %s, "most": %q}, "nic": {%[1]s},
				"workload": [%[4]s], "duration": "30ms", "lean": %[5]v}`, c.nic, c.weights, c.most, text[1:], lean))
			got, sum := map[uint8]float64{}, 0.
			for i, f := range x.Series.Flows {
				for _, rate := range f.Rate[len(f.Rate)/2:] {
					got[x.Flows[i].Priority] += rate / float64(len(f.Rate)/2)
				}
			}
			for _, rate := range got {
				sum += rate
			}
			t.Logf("%s: %.4v Gb/s, %d of %d packets lost", c.name, got, x.Summary.Drops, x.Summary.Packets)
			for p, share := range c.shares {
				if d := got[p] / sum; d < share-0.02 || d > share+0.02 {
					t.Errorf("%s: priority %d has %.3f of the port, want %.3f", c.name, p, d, share)
				}
			}
			if sum < 35 || lean && x.Summary.Drops == 0 {
				t.Errorf("%s: %.4v Gb/s, %d packets lost", c.name, sum, x.Summary.Drops)
			}
		})
	}
}

// TestLean_Refuses: a lean receiver refuses the first packet behind a gap, and again when the sender has gone back and what it was asked
// for is lost again.
func TestLean_Refuses(t *testing.T) {
	r := prepare(t, `{"topology": {"kind": "star", "hosts": 2}, "workload": {"kind": "shift"}, "lean": true}`)
	f := r.flows[0].receiving
	h := newLeanHost(f.shard, r.s.Graph.Hosts[1])
	b := h.packet[:]
	refused := ""
	for i, psn := range []ib.PSN{0, 2, 3, 4, 2, 3, 5, 1, 2, 4, 6, 3} {
		told := len(h.notices)
		ib.BTH(b[bthAt:]).Encode(ib.RCWriteMiddle, false, false, 0, pkey, receivingNumber(0), psn)
		if h.data(clock.Time(i), f, b, 1024); len(h.notices) > told {
			refused += fmt.Sprintf(" %d behind %d", psn, h.notices[told].psn)
		}
	}
	if refused != " 2 behind 1 2 behind 1 4 behind 3" {
		t.Errorf("refused:%s", refused)
	}
}
