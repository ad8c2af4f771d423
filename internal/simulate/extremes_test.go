package simulate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/softvpi/softvpi/internal/simulate/scenario"
)

// extremes are values at the ends of what fields allow.
var extremes = map[string][]string{
	"topology.rate": {"1Mb/s", "1Tb/s", "10Gb/s"}, "topology.delay": {"0", "1ns", "1s", "10us"},
	"seed": {"0", "9007199254740992"}, "duration": {"1us", "100us"}, "sample": {"100ns", "1s", "333ns"}, "lean": {"true", "false"},
	"switch.buffer": {"65536B", "1073741824B", "200KB"}, "switch.pfc": {"[]", "[0,1,2,3,4,5,6,7]", "[3]"}, "switch.pause": {"true"},
	"switch.xoff": {"1B", "1073741824B", "10KB"}, "switch.xoff_alpha": {"0.0078125", "64"}, "switch.xon": {"1B", "1073741824B"},
	"switch.headroom": {"none", "auto", "0", "1B", "1073741824B"}, "switch.quanta": {"0", "1", "300", "65535"},
	"switch.most": {"1B", "1073741824B"}, "switch.alpha": {"0.0078125", "64"},
	"switch.kmin": {"0", "1B", "1073741824B"}, "switch.kmax": {"0", "1B", "1073741824B"}, "switch.pmax": {"0", "1"},
	"switch.mark": {"leaving", "coming"}, "switch.storm": {"1ms", "100s"}, "switch.strict": {"[0,1,2,3,4,5,6,7]", "[3]"},
	"switch.weights": {"[0,0,0,0,0,0,0,0]", "[100,100,100,100,100,100,100,100]"},
	"switch.mtu":     {"576", "9216"},
	"nic.mtu":        {"256", "4096"}, "nic.pfc": {"[3]", "[0,1,2,3,4,5,6,7]"}, "nic.pause": {"true"}, "nic.take": {"1Mb/s", "1Tb/s"},
	"nic.timeout": {"1", "31"}, "nic.ack_every": {"1", "1024"}, "nic.cnp_interval": {"0", "1s"},
	"nic.dcqcn": {"authors", "manual", "firmware"}, "nic.DcqcnEnablePrio3": {"1"}, "nic.DcqcnRpgMinRate": {"1"},
	"workload.size": {"1B", "1099511627776B", "256KB", "262145B"}, "workload.priority": {"0", "7"}, "workload.start": {"0", "100s", "50us"},
	"workload.kind": {"incast", "permutation", "shift", "all-to-all", "ring-allreduce", "tree-allreduce"},
}

// TestExtremes: whatever values fields have that they allow, a scenario is refused with an error that names a field and what is allowed,
// or runs to its end.
func TestExtremes(t *testing.T) {
	fields := slices.Sorted(maps.Keys(extremes))
	base, err := scenario.Read("f", []byte(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	known := base.Known
	refused, ran := map[string]int{}, 0
	rapid.Check(t, func(t *rapid.T) {
		set := []scenario.Set{{Path: "duration", Text: "100us"}}
		for _, f := range rapid.SliceOfNDistinct(rapid.SampledFrom(fields), 1, 8, rapid.ID[string]).Draw(t, "fields") {
			set = append(set, scenario.Set{Path: f, Text: rapid.SampledFrom(extremes[f]).Draw(t, f), By: "--set"})
		}
		topology := rapid.SampledFrom([]string{`"kind": "incast", "senders": 3`, `"kind": "leaf-spine", "leaves": 2, "hosts": 2`,
			`"kind": "ring", "switches": 3`}).Draw(t, "topology")
		s, err := scenario.Read("f", []byte(fmt.Sprintf(`{"topology": {%s}}`, topology)), set...)
		var r *Run
		if err == nil {
			r, err = New(s)
		}
		var bad *scenario.Error
		switch {
		case errors.As(err, &bad):
			if bad.Field == "" || bad.Allowed == "" || !slices.Contains(known, bad.Field) {
				t.Fatalf("%v", err)
			}
			refused[bad.Field]++
			return
		case err != nil:
			t.Fatal(err)
		}
		ctx, stop := context.WithTimeout(context.Background(), 20*time.Second)
		defer stop()
		if _, err := r.Run(ctx, 1, nil); err != nil {
			t.Fatal(err)
		}
		ran++
	})
	t.Logf("%d ran; refused: %v", ran, refused)
	if ran == 0 {
		t.Error("all is refused")
	}
}

// TestNew_Refuses: what no switch or station can be is named by the scenario's field.
func TestNew_Refuses(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{`{"switch": {"pfc": [3], "buffer": "70KB"}}`, "f: switch.buffer is 70000; allowed: "},
		{`{"switch": {"pfc": [3]}, "switches": {"switch": {"buffer": "70KB"}}}`, "f: switches.switch.buffer is 70000; allowed: "},
		{`{"switch": {"pfc": [3], "quanta": 1}}`, "f: switch.quanta is 1; allowed: 0, or at least "},
		{`{"switch": {"pfc": [3]}, "topology": {"rate": "1Tb/s", "delay": "1ms"}}`, "f: switch.buffer is 12582912; allowed: "},
		{`{"nic": {"pfc": [3]}, "topology": {"rate": "1Tb/s", "delay": "1s"}}`, "f: topology.delay is 1s at 1000 Gb/s; allowed: less, where"},
	} {
		s, err := scenario.Read("f", []byte(c.text))
		if err == nil {
			_, err = New(s)
		}
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.text, err, c.want)
		}
	}
}
