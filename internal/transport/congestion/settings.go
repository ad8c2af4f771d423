package congestion

import (
	"time"

	"github.com/softvpi/softvpi/internal/command"
)

// Priorities is the number of priorities that have a switch of their own (IEEE 802.1Q, 6.9.3).
const Priorities = 8

const (
	// defaultCNPInterval is the time between two notifications to one queue pair (Zhu et al., SIGCOMM 2015, 5.2).
	defaultCNPInterval = 50 * time.Microsecond
	// defaultSlack is how late a turn comes in which a queue pair may send again, in a program that sleeps meanwhile.
	defaultSlack = 100 * time.Microsecond
)

// Settings are those of DCQCN for an adapter (WinOF-2 Ethernet b, RoCEv2 Congestion Management). The zero value has it off.
type Settings struct {
	// React and Notify have bit p set where priority p has a reaction point and a notification point.
	React, Notify uint8
	Reaction      Parameters
	// CNPDSCP is the DSCP of the notifications that the adapter sends, 0 to 63.
	CNPDSCP uint8
	// CNPPriority is their priority, 0 to 7; FollowPriority: they have that of the packet that was marked instead.
	CNPPriority    uint8
	FollowPriority bool
	// CNPInterval is the least time between two notifications to one queue pair; 0 means 50 us. The manual has no key for it.
	CNPInterval time.Duration
	// Slack is how late the turns of a queue pair may come that waits for its time: so much of its rate leaves in one turn,
	// and is made up for. 0 means 100 us; in virtual time, where turns are never late, 1 ns sends packet by packet.
	Slack time.Duration
}

// Parameters are those of reaction points. Rates are in Mbit/s, alpha and g fractions.
type Parameters struct {
	// LineRate is what a queue pair sends at as long as nothing limits it, and the maximum of both rates. Required.
	LineRate float64
	// ClampTarget sets the target rate to the current rate at every decrease (DcqcnClampTgtRate), ClampTargetAfterTime also
	// where the timer alone has raised the rate since the last one (DcqcnClampTgtRateAfterTimeInc). With neither it is set
	// where the byte counter has.
	ClampTarget, ClampTargetAfterTime bool
	// TimeReset and ByteReset are the time and the bytes from one increase to the next; 0: no increase by that.
	TimeReset time.Duration
	ByteReset int64
	// Threshold is the number of increases in fast recovery.
	Threshold int
	// AIRate and HAIRate are what additive and hyper additive increase add to the target rate.
	AIRate, HAIRate float64
	// AlphaShift: a decrease takes the fraction alpha x 1024 / 2^AlphaShift off the current rate (alpha is in 1024ths).
	AlphaShift uint
	// MinDecrease is the fraction of the rate that a decrease leaves at least; 0: no limit.
	MinDecrease float64
	// MinRate is the least current rate.
	MinRate float64
	// FirstCNPRate is both rates after the first notification; 0 leaves them.
	FirstCNPRate float64
	// G is how much alpha follows what came in the last AlphaPeriod.
	G           float64
	AlphaPeriod time.Duration // 0: alpha stays what it is
	// ReducePeriod is the time in which the rate decreases at most once; 0: at every notification.
	ReducePeriod time.Duration
	InitialAlpha float64
}

// Enabled reports whether any priority has a reaction or notification point.
func (s *Settings) Enabled() bool { return s.React|s.Notify != 0 }

// Complete fills in the defaults and checks the rest. Errors are *command.Error.
func (s *Settings) Complete() error {
	if s.CNPInterval == 0 {
		s.CNPInterval = defaultCNPInterval
	}
	if s.Slack == 0 {
		s.Slack = defaultSlack
	}
	p := &s.Reaction
	for _, f := range []struct {
		name  string
		value any
		ok    bool
		want  string
	}{
		{"CNPDSCP", s.CNPDSCP, s.CNPDSCP < 64, "0 to 63"},
		{"CNPPriority", s.CNPPriority, s.CNPPriority < Priorities, "0 to 7"},
		{"CNPInterval", s.CNPInterval, s.CNPInterval > 0, "a time"},
		{"Slack", s.Slack, s.Slack > 0, "a time"},
		{"LineRate", p.LineRate, s.React == 0 || p.LineRate >= 1, "at least 1 Mbit/s"},
		{"TimeReset", p.TimeReset, p.TimeReset >= 0, "a time"},
		{"ByteReset", p.ByteReset, p.ByteReset >= 0, "a number of bytes"},
		{"Threshold", p.Threshold, s.React == 0 || p.Threshold >= 1 && p.Threshold <= 31, "1 to 31"},
		{"AIRate", p.AIRate, p.AIRate >= 0, "a rate"},
		{"HAIRate", p.HAIRate, p.HAIRate >= 0, "a rate"},
		{"AlphaShift", p.AlphaShift, p.AlphaShift <= 11, "0 to 11"},
		{"MinDecrease", p.MinDecrease, p.MinDecrease >= 0 && p.MinDecrease <= 1, "0 to 1"},
		{"MinRate", p.MinRate, p.MinRate >= 0, "a rate"},
		{"FirstCNPRate", p.FirstCNPRate, p.FirstCNPRate >= 0, "a rate"},
		{"G", p.G, p.G >= 0 && p.G <= 1, "0 to 1"},
		{"AlphaPeriod", p.AlphaPeriod, p.AlphaPeriod >= 0, "a time"},
		{"ReducePeriod", p.ReducePeriod, p.ReducePeriod >= 0, "a time"},
		{"InitialAlpha", p.InitialAlpha, p.InitialAlpha >= 0 && p.InitialAlpha <= 1, "0 to 1"},
	} {
		if !f.ok {
			return command.Errorf(command.Invalid, "%s is %v, want %s", f.name, f.value, f.want)
		}
	}
	return nil
}
