// Package vfmonitor watches how much work virtual functions make for the driver, and says which make too much (WinOF-2 24.4, VF
// Monitoring). It is pure: it is told what was spent and refused, and when it is.
//
// In a card the work is that of its firmware, for the commands of a virtual function. Here it is the driver's: FwCpuUsage is the time
// that it spent on a function's commands, and Errors2FW counts those that it refused.
package vfmonitor

import (
	"fmt"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
)

const (
	// MostVFs is how many virtual functions are watched.
	MostVFs = 127
	// Segment is the number by which a resource dump asks for the counters.
	Segment = 0x5000

	mostPeriod = 86400 * time.Second
)

// Counter is one of the two, by its number in a resource dump: Index2.
type Counter int

// The counters.
const (
	FwCPUUsage Counter = 1 // microseconds
	Errors2FW  Counter = 2 // commands
)

// String names the counter as the manual does.
func (c Counter) String() string {
	if c == FwCPUUsage {
		return "FwCpuUsage"
	}
	return "Errors2FW"
}

// Config has the values of the registry keys.
type Config struct {
	Enabled bool // VfCpuMonEnable
	// Period is VfCpuMonBatchPeriodSec, 1 s to a day.
	Period time.Duration
	// MostUsage is VfCpuMonFwCpuUsageMax, 1 to 100 % of the period, and MostErrors VfCpuMonErrors2FwMax, at least 1.
	MostUsage  int
	MostErrors uint64
}

// FieldError says which value is invalid, and what it may be.
type FieldError struct {
	Field string
	Value any
	Want  string
}

// Error implements error.
func (e *FieldError) Error() string {
	return fmt.Sprintf("%s is %v, want %s", e.Field, e.Value, e.Want)
}

// Check checks the values. The error is a *FieldError.
func (c *Config) Check() error {
	switch {
	case c.Period < time.Second || c.Period > mostPeriod:
		return &FieldError{"VfCpuMonBatchPeriodSec", c.Period, "1 s to 86400 s"}
	case c.MostUsage < 1 || c.MostUsage > 100:
		return &FieldError{"VfCpuMonFwCpuUsageMax", c.MostUsage, "1 to 100"}
	case c.MostErrors < 1:
		return &FieldError{"VfCpuMonErrors2FwMax", c.MostErrors, "1 at least"}
	}
	return nil
}

// reading is what a function has caused.
type reading struct {
	spent  time.Duration
	errors uint64
}

// Monitor watches the virtual functions of an adapter.
type Monitor struct {
	cfg      Config
	now, was [MostVFs]reading
	last     clock.Time // when was is from
}

// New returns a monitor that begins to watch. The error is a *FieldError.
func New(now clock.Time, cfg Config) (*Monitor, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	return &Monitor{cfg: cfg, last: now}, nil
}

// Change changes the keys' values at once, and a new period begins. The error is a *FieldError; nothing has changed then.
func (m *Monitor) Change(now clock.Time, cfg Config) error {
	if err := cfg.Check(); err != nil {
		return err
	}
	m.cfg = cfg
	m.begin(now)
	return nil
}

func (m *Monitor) begin(now clock.Time) { m.was, m.last = m.now, now }

// State is what "mlx5cmd -Features" prints.
func (m *Monitor) State() string {
	if m.cfg.Enabled {
		return "Enabled"
	}
	return "Disabled"
}

// Spent adds time that a command of a virtual function has taken. Numbers of functions that there cannot be are ignored.
func (m *Monitor) Spent(vf int, d time.Duration) {
	if vf >= 0 && vf < MostVFs && d > 0 {
		m.now[vf].spent += d
	}
}

// Refused counts a command of a virtual function that was refused.
func (m *Monitor) Refused(vf int) {
	if vf >= 0 && vf < MostVFs {
		m.now[vf].errors++
	}
}

// Reset forgets a virtual function that is gone: another may get its number.
func (m *Monitor) Reset(vf int) {
	if vf >= 0 && vf < MostVFs {
		m.now[vf], m.was[vf] = reading{}, reading{}
	}
}

// Deadline returns when the counters are to be read next.
func (m *Monitor) Deadline() clock.Time {
	if !m.cfg.Enabled {
		return clock.Never
	}
	return m.last.Add(m.cfg.Period)
}

// Warning says that a virtual function made too much work between two readings.
type Warning struct {
	VF      int
	Seconds int // between the readings
	Usage   int // percent of that time
	Errors  uint64
}

// String is the text of the event.
func (w Warning) String() string {
	return fmt.Sprintf("VF %d used too many resources over the last %d seconds: FwCpuUsage %d%%, Errors2Fw %d",
		w.VF, w.Seconds, w.Usage, w.Errors)
}

// Advance reads the counters if it is time, and adds to list a warning for every virtual function that made more work since the last
// reading than a threshold allows. A reading that comes late is compared with the time that has passed.
func (m *Monitor) Advance(now clock.Time, list []Warning) []Warning {
	if now < m.Deadline() {
		return list
	}
	passed := now.Sub(m.last)
	for vf := range m.now {
		spent, errors := m.now[vf].spent-m.was[vf].spent, m.now[vf].errors-m.was[vf].errors
		if spent > passed/100*time.Duration(m.cfg.MostUsage) || errors > m.allowed(passed) {
			list = append(list, Warning{VF: vf, Seconds: int(passed.Round(time.Second) / time.Second), Usage: int(spent * 100 / passed),
				Errors: errors})
		}
	}
	m.begin(now)
	return list
}

// allowed returns how many errors are allowed in a time that a late reading has made longer than a period.
func (m *Monitor) allowed(passed time.Duration) uint64 {
	if passed <= m.cfg.Period {
		return m.cfg.MostErrors
	}
	return uint64(float64(m.cfg.MostErrors) * (float64(passed) / float64(m.cfg.Period)))
}

// Batch returns the values of one counter of several virtual functions, as a resource dump of the segment 0x5000 asks for them:
// Index1 is the number of the first function plus one, NumOfObj1 how many there are, and Index2 the counter (WinOF-2 24.4, Customer
// Facilities). The error is a *FieldError.
func (m *Monitor) Batch(index1, numOfObj1, index2 int) ([]uint64, error) {
	const all, active = 0xffff, 0xfffe // "The '-NumOfObj1' special values 0xffff and 0xfffe are not supported for the segment 0x5000."
	switch {
	case index1 < 1 || index1 > MostVFs:
		return nil, &FieldError{"Index1", index1, fmt.Sprintf("1 to %d: the number of a VF plus 1", MostVFs)}
	case numOfObj1 == all || numOfObj1 == active:
		return nil, &FieldError{"NumOfObj1", fmt.Sprintf("0x%x", numOfObj1), "a number of VFs: special values are not supported for segment 0x5000"}
	case numOfObj1 < 1 || index1-1+numOfObj1 > MostVFs:
		return nil, &FieldError{"NumOfObj1", numOfObj1, fmt.Sprintf("1 to %d from Index1 %d on", MostVFs-index1+1, index1)}
	case Counter(index2) != FwCPUUsage && Counter(index2) != Errors2FW:
		return nil, &FieldError{"Index2", index2, "1 for FwCpuUsage or 2 for Errors2FW"}
	}
	list := make([]uint64, numOfObj1)
	for i := range list {
		if r := &m.now[index1-1+i]; Counter(index2) == FwCPUUsage {
			list[i] = uint64(r.spent / time.Microsecond)
		} else {
			list[i] = r.errors
		}
	}
	return list, nil
}
