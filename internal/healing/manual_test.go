package healing_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/catalogue"
	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/healing"
)

// printedSensor is a sensor of the manual.
type printedSensor struct {
	sensor healing.Sensor
	words  string // that the printed name and ours share
	mask   uint32
	event  uint32
	symbol string
	checks int
}

// printed are the sensors as WinOF 5.50 prints them (4.10.1.1.1.1), with the IDs of their events (4.10.1.3 has 3009 for the first of
// them), and after how many checks without progress they fire if CheckForHangCQMaxNoProgress is 1; 0: at an error.
var printed = []printedSensor{
	{healing.SendHardware, "lack of progress in hardware for ... send queues", 0x00000008, 30009, "SendHardwareStuck", 1},
	{healing.ReceiveSoftware, "lack of progress in software for ... receive queues", 0x00000040, 30011, "ReceiveSoftwareStuck", 1},
	{healing.ReceiveCompletion, "receive completion error", 0x00010000, 30021, "ReceiveCompletionError", 0},
	{healing.SendCompletion, "send completion error", 0x00020000, 30022, "SendCompletionError", 0},
	{healing.SendSoftware, "lack of progress in software for ... send queues", 0x00000010, 30029, "SendSoftwareStuck", 2},
}

// TestManual_Sensors: names, masks, events and times are those that are printed; bits of our own are none of the manual's.
func TestManual_Sensors(t *testing.T) {
	var theirs healing.Sensor
	for _, p := range printed {
		theirs |= p.sensor
		if uint32(p.sensor) != p.mask {
			t.Errorf("%v has the mask %s, printed is 0x%08x", p.sensor, p.sensor.Mask(), p.mask)
		}
		if name := strings.ToLower(p.sensor.String()); name != strings.ReplaceAll(p.words, "... ", "") {
			t.Errorf("0x%08x is called %q, printed is %q", p.mask, name, p.words)
		}
		e, ok := catalogue.EventFor(p.symbol, catalogue.MLX4)
		if !ok || e.ID != p.event || e.OwnID || e.Source != "Mellanox-Drivers" || e.Status != catalogue.Built ||
			!slices.Equal(e.Fields, []string{"Device"}) {
			t.Errorf("%v: the event is %+v, printed is %d with the device's name", p.sensor, e, p.event)
		}
	}
	for _, s := range healing.All {
		if !slices.ContainsFunc(printed, func(p printedSensor) bool { return p.sensor == s }) && s&theirs != 0 {
			t.Errorf("%v has a bit of the manual's", s)
		}
	}
}

// TestManual_Times: with the printed defaults a part counts as stuck after SHCheckForHangTimeInSeconds * CheckForHangCQMaxNoProgress,
// sends in software after twice that; with both at their least, and at the most of the second, likewise.
func TestManual_Times(t *testing.T) {
	for _, set := range []struct {
		every time.Duration
		looks int
	}{{4 * time.Second, 4}, {time.Second, 1}, {time.Second, 1000}} {
		for _, p := range printed {
			c := healing.New(0, healing.Settings{Every: set.every, Looks: set.looks, Active: 0xffffffff})
			done, fired := uint64(0), clock.Time(0)
			for n := 0; fired == 0 && n < 3*set.looks+3; n++ {
				now := c.Deadline()
				if p.checks == 0 && n == 1 {
					done++ // an error
				}
				if v := c.Look(now, []healing.Reading{{Sensor: p.sensor, Waits: true, Done: done}}); len(v) > 0 {
					fired = now
					if v[0].Sensor != p.sensor || !v[0].Restart || v[0].Dump {
						t.Errorf("%v: %+v, want a restart and no dump, as the masks have it by default", p.sensor, v[0])
					}
				}
			}
			// The first look sees that there is something to do.
			want := clock.Time(set.every) * clock.Time(1+p.checks*set.looks)
			if p.checks == 0 {
				want = clock.Time(2 * set.every)
			}
			if fired != want {
				t.Errorf("%v with %v and %d: fires after %v, want %v", p.sensor, set.every, set.looks, time.Duration(fired), time.Duration(want))
			}
		}
	}
}

// TestManual_Keys: the four keys are in the adapter's class with the printed defaults and limits, and act without a restart ("The driver
// detects registry changes dynamically", 4.10.1.2).
func TestManual_Keys(t *testing.T) {
	for name, want := range map[string]struct{ otherwise, least, most uint64 }{
		"SHCheckForHangTimeInSeconds": {4, 1, 0xffffffff}, "SHMPResetActiveSensorsMask": {0xffffffff, 0, 0xffffffff},
		"SHSensorsDumpMask": {0, 0, 0xffffffff}, "CheckForHangCQMaxNoProgress": {4, 1, 1000},
	} {
		keys := catalogue.Lookup(name)
		if len(keys) != 1 {
			t.Errorf("there are %d keys %s", len(keys), name)
			continue
		}
		k := &keys[0]
		least, most := k.Limits()
		otherwise := k.Defaults[catalogue.Both].Number
		if otherwise != want.otherwise || least != want.least || most != want.most {
			t.Errorf("%s is %d by default and %d to %d, printed is %d and %d to %d", name, otherwise, least, most, want.otherwise, want.least,
				want.most)
		}
		if k.Base != catalogue.AdapterClass || k.Path != "" || k.Type != catalogue.DWORD || k.Effect != catalogue.AtOnce ||
			k.Generations&catalogue.MLX4 == 0 || k.Status != catalogue.Built {
			t.Errorf("%s: %+v", name, k)
		}
	}
}

// TestManual_Events: the events of the self-healing manager have the printed IDs and say what is printed.
func TestManual_Events(t *testing.T) {
	for symbol, want := range map[string]struct {
		id     uint32
		fields string
	}{
		"SelfHealingFailed": {0x008b, "Device Sensors Error"}, "SelfHealingRestart": {0x008c, "Interface Sensors Restarts"},
		"SelfHealingStop": {0x008d, "Interface Sensors"}, "DumpMeNow": {0x0100, "Device Folder Root"},
	} {
		e, ok := catalogue.EventFor(symbol, catalogue.MLX4)
		if !ok || e.ID != want.id || e.OwnID || strings.Join(e.Fields, " ") != want.fields || e.Status != catalogue.Built {
			t.Errorf("%s is %+v, want the ID 0x%04x and %s", symbol, e, want.id, want.fields)
		}
	}
	if e, ok := catalogue.EventFor("VFChannelError", catalogue.MLX4); !ok || e.ID != 30013 || e.Status == catalogue.Built {
		t.Errorf("VFChannelError is %+v, want the ID 30013, and that nothing raises it", e)
	}
}
