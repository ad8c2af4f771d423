package driver

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/ipc/client"
	"github.com/softvpi/softvpi/internal/os/paths"
)

// watched starts a driver with the virtual functions one and two at its first adapter, whose keys are set first, and is restarted.
func watched(t *testing.T, keys map[string]string) *Driver {
	t.Helper()
	d := tenanted(t)
	for key, value := range keys {
		if _, err := d.Set("a", key, &value); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.RestartAdapter("a"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"one", "two"} {
		if _, err := d.CreateFunction(api.FunctionRequest{Adapter: "a", Name: name}); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

// tenant attaches a program to a virtual function.
func tenant(t *testing.T, d *Driver, name string) (*client.Client, error) {
	t.Helper()
	c, err := client.Dial(t.Context(), paths.Function(d.cfg.Socket, name), client.Options{})
	if err == nil {
		t.Cleanup(func() { c.Close() })
	}
	return c, err
}

// misbehave lets a program of a virtual function give commands that are refused.
func misbehave(t *testing.T, d *Driver, name string, times int) {
	t.Helper()
	c, err := tenant(t, d, name)
	if err != nil {
		t.Fatal(err)
	}
	for range times {
		if _, err := c.AllocPD(t.Context(), 7); err == nil {
			t.Fatal("a domain of an adapter that there is not")
		}
	}
}

// day has a period of watching that no test sees the end of, unless it says that it is over.
const day = 86400 * time.Second

// TestFunctionWatch_Counts: the commands of a virtual function that are refused, and the time that its commands take, are counted for it
// alone, also while nobody is to be warned; the next function with its number begins at 0.
func TestFunctionWatch_Counts(t *testing.T) {
	d := watched(t, nil)
	misbehave(t, d, "two", 5)
	f := d.Functions()
	one, two := f[0].Counters, f[1].Counters
	if one["errors2fw"] != 0 || two["errors2fw"] != 5 || one["fw_cpu_usage_us"] != 0 {
		t.Errorf("%v and %v are counted, want 0 and 5 errors", one, two)
	}
	d.functionCommand("two", 90*time.Second, nil)
	if got := d.Functions()[1].Counters["fw_cpu_usage_us"]; got < 90e6 {
		t.Errorf("a command of 90 s makes it %d µs", got)
	}
	if err := d.RemoveFunction("two"); err != nil {
		t.Fatal(err)
	}
	if _, err := d.CreateFunction(api.FunctionRequest{Adapter: "a", Name: "three"}); err != nil {
		t.Fatal(err)
	}
	if x := d.Functions()[1]; x.Number != 1 || x.Counters["errors2fw"] != 0 || x.Counters["fw_cpu_usage_us"] != 0 {
		t.Errorf("the next function is number %d and begins with %v", x.Number, x.Counters)
	}
}

// TestFunctionWatch_Warns: beyond the thresholds of the keys, which act at once, the event log says at the end of the period which virtual
// function made how much work, in the manual's words; within them, or if the key is 0, nothing (WinOF-2 24.4, VF Monitoring).
func TestFunctionWatch_Warns(t *testing.T) {
	for name, c := range map[string]struct {
		keys  map[string]string
		spent time.Duration // of two, which has 5 errors
		want  string
	}{
		"errors": {map[string]string{"VfCpuMonEnable": "1", "VfCpuMonErrors2FwMax": "3"}, 0, "FwCpuUsage 0%, Errors2Fw 5"},
		"time":   {map[string]string{"VfCpuMonEnable": "1", "VfCpuMonFwCpuUsageMax": "50"}, day * 60 / 100, "%, Errors2Fw 5"},
		"within": {map[string]string{"VfCpuMonEnable": "1", "VfCpuMonFwCpuUsageMax": "70"}, day * 60 / 100, ""},
		"off":    {map[string]string{"VfCpuMonEnable": "0", "VfCpuMonErrors2FwMax": "1"}, day, ""},
	} {
		t.Run(name, func(t *testing.T) {
			d := watched(t, map[string]string{"VfCpuMonBatchPeriodSec": "86400"})
			for key, value := range c.keys {
				if _, err := d.Set("a", key, &value); err != nil {
					t.Fatal(err)
				}
			}
			misbehave(t, d, "two", 5)
			d.functionCommand("two", c.spent, nil)
			list := d.functionWatch.warnings(0, d.functionWatch.now().Add(day))
			if (len(list) == 1) != (c.want != "") {
				t.Fatalf("%v, want %q", list, c.want)
			}
			if c.want != "" && !strings.Contains(list[0].String(), c.want) {
				t.Errorf("%s, want %s", list[0], c.want)
			}
		})
	}
	d := watched(t, map[string]string{"VfCpuMonEnable": "1", "VfCpuMonBatchPeriodSec": "86400", "VfCpuMonErrors2FwMax": "3"})
	misbehave(t, d, "two", 5)
	d.lookAtFunctions(d.functionWatch.now().Add(day))
	wantEvent(t, d, "VFTooManyResources", "VF 1 used too many resources over the last 864", "FwCpuUsage 0%, Errors2Fw 5")
}

// TestFunctionWatch_Batch: one counter of several virtual functions is read by a resource dump of segment 0x5000; what is wrong in the
// request is named, and an adapter without functions has nothing to read.
func TestFunctionWatch_Batch(t *testing.T) {
	d := watched(t, nil)
	misbehave(t, d, "two", 5)
	n := func(x uint32) *uint32 { return &x }
	dumped := func(adapter string, q api.ResourceDumpRequest) (string, error) {
		q.Segment = 0x5000
		out, err := d.DumpResource(adapter, q)
		if err != nil {
			return "", err
		}
		b, err := os.ReadFile(out.Files[1])
		return string(b), err
	}
	if text, err := dumped("a", api.ResourceDumpRequest{Index1: n(1), NumOfObj1: 2, Index2: n(2)}); err != nil ||
		!strings.Contains(text, "VF 0 Errors2FW: 0\n\tVF 1 Errors2FW: 5\n") {
		t.Errorf("the dump has %q, %v", text, err)
	}
	for want, q := range map[string]api.ResourceDumpRequest{
		"index1 is 0": {Index2: n(1)}, "index2 is 3": {Index1: n(1), Index2: n(3)},
		"num_of_obj1 is 0xffff": {Index1: n(1), Index2: n(1), NumOfObj1: 0xffff}, "num_of_obj1 is 127": {Index1: n(2), Index2: n(1), NumOfObj1: 127},
		"num_of_obj2 is 1": {Index1: n(1), Index2: n(1), NumOfObj2: 1},
	} {
		if _, err := dumped("a", q); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", q, err, want)
		}
	}
	if _, err := dumped("b", api.ResourceDumpRequest{Index1: n(1), Index2: n(1)}); err == nil || !strings.Contains(err.Error(), "the adapter has none") {
		t.Errorf("without functions: %v", err)
	}
}

// TestFunctionWatch_Pages: what the programs of a virtual function make the driver hold ends at MaxFWPagesUsagePerVF, with an error that
// names it and an event; other functions are not concerned (WinOF-2 24.4, Configuring Host Memory Limit per VF).
func TestFunctionWatch_Pages(t *testing.T) {
	t.Parallel()
	d := watched(t, map[string]string{"MaxFWPagesUsagePerVF": "2048"})
	var full error
	for n := 0; n < 1000 && full == nil; n++ {
		_, full = tenant(t, d, "one")
	}
	if full == nil || !strings.Contains(full.Error(), `for the virtual function "one": allowed: 8388608 (MaxFWPagesUsagePerVF)`) {
		t.Fatalf("beyond the limit: %v", full)
	}
	if _, err := tenant(t, d, "two"); err != nil {
		t.Errorf("another function: %v", err)
	}
	wantEvent(t, d, "VFTooManyPages", "virtual function 0 asked for more than the 2048 pages")
}
