package driver

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/catalogue"
	"github.com/softvpi/softvpi/internal/transport/congestion"
)

// The effect of their values is tested in packages congestion and transport, with a scripted clock.
func init() {
	for _, k := range catalogue.Keys() {
		if strings.HasPrefix(k.Name, "Dcqcn") {
			acting[k.Name] = TestCongestionKeys
		}
	}
}

// TestCongestionKeys: each key of congestion control is the parameter that the manual says, in its unit, at once (WinOF-2
// Ethernet b, RCM Parameters).
func TestCongestionKeys(t *testing.T) {
	d := start(t, quiet(t))
	defer stop(t, d)
	if s := d.running[0].congestion(); s.Enabled() {
		t.Errorf("it is on by default: %+v", s)
	}
	set(t, d, "left", "DcqcnRPEnablePrio0", "1")
	defaults := congestion.Parameters{ClampTargetAfterTime: true, TimeReset: 100 * time.Microsecond, ByteReset: 25600, Threshold: 5,
		AIRate: 10, HAIRate: 100, AlphaShift: 11, MinDecrease: 0.5, MinRate: 1, FirstCNPRate: 3000, G: 32.0 / 1024,
		AlphaPeriod: 4 * time.Microsecond, ReducePeriod: 32 * time.Microsecond}
	if s := d.running[0].congestion(); s.Reaction != defaults || s.React != 1 || s.Notify != 0 || !s.FollowPriority {
		t.Errorf("%+v", s)
	}
	for _, c := range []struct {
		key, value string
		want       func(s *congestion.Settings)
	}{
		{"DcqcnClampTgtRate", "1", func(s *congestion.Settings) { s.Reaction.ClampTarget = true }},
		{"DcqcnClampTgtRateAfterTimeInc", "0", func(s *congestion.Settings) { s.Reaction.ClampTargetAfterTime = false }},
		{"DcqcnRpgTimeReset", "131071", func(s *congestion.Settings) { s.Reaction.TimeReset = 131071 * time.Microsecond }},
		{"DcqcnRpgByteReset", "32767", func(s *congestion.Settings) { s.Reaction.ByteReset = 32767 * 64 }},
		{"DcqcnRpgThreshold", "31", func(s *congestion.Settings) { s.Reaction.Threshold = 31 }},
		{"DcqcnRpgAiRate", "7", func(s *congestion.Settings) { s.Reaction.AIRate = 7 }},
		{"DcqcnRpgHaiRate", "77", func(s *congestion.Settings) { s.Reaction.HAIRate = 77 }},
		{"DcqcnAlphaToRateShift", "10", func(s *congestion.Settings) { s.Reaction.AlphaShift = 10 }},
		{"DcqcnRpgMinDecFac", "25", func(s *congestion.Settings) { s.Reaction.MinDecrease = 0.25 }},
		{"DcqcnRpgMinRate", "100", func(s *congestion.Settings) { s.Reaction.MinRate = 100 }},
		{"DcqcnRateToSetOnFirstCnp", "0", func(s *congestion.Settings) { s.Reaction.FirstCNPRate = 0 }},
		{"DcqcnDceTcpG", "512", func(s *congestion.Settings) { s.Reaction.G = 0.5 }},
		{"DcqcnDceTcpRtt", "55", func(s *congestion.Settings) { s.Reaction.AlphaPeriod = 55 * time.Microsecond }},
		{"DcqcnRateReduceMonitorPeriod", "50", func(s *congestion.Settings) { s.Reaction.ReducePeriod = 50 * time.Microsecond }},
		{"DcqcnInitialAlphaValue", "256", func(s *congestion.Settings) { s.Reaction.InitialAlpha = 0.25 }},
		{"DcqcnCnpDscp", "48", func(s *congestion.Settings) { s.CNPDSCP = 48 }},
		{"DcqcnCnp802pPrio", "6", func(s *congestion.Settings) { s.CNPPriority = 6 }},
		{"DcqcnCnpPrioMode", "0", func(s *congestion.Settings) { s.FollowPriority = false }},
	} {
		want := d.running[0].congestion()
		c.want(&want)
		set(t, d, "left", c.key, c.value)
		if got := d.running[0].congestion(); got != want {
			t.Errorf("%s: %+v, want %+v", c.key, got, want)
		}
	}
	for p := range congestion.Priorities {
		set(t, d, "left", fmt.Sprint("DcqcnEnablePrio", p), "1")
		if s := d.running[0].congestion(); s.React != 2<<p-1 || s.Notify != 2<<p-1 {
			t.Errorf("priority %d: %#x react and %#x notify", p, s.React, s.Notify)
		}
	}
	if s := d.running[1].congestion(); s.Enabled() {
		t.Errorf("the other adapter has it on: %+v", s)
	}
}
