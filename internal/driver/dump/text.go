package dump

import (
	"bytes"
	"fmt"
	"reflect"
	"time"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/driver/commandlog"
	"github.com/softvpi/softvpi/internal/driver/dump/register"
	"github.com/softvpi/softvpi/internal/events"
)

// timeForm is the format of times in dumps.
const timeForm = "2006-01-02T15:04:05.000000Z07:00"

// Counters returns the counters of an adapter, which are numbers in nested structures, for its registers.
func Counters(s *device.Inspection) (list []register.Counter) {
	return numbers(nil, "", reflect.ValueOf(s.Counters))
}

// Queues returns the event, completion and shared receive queues of an adapter.
func Queues(at time.Time, s *device.Inspection) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# queues at %s\n", at.Format(timeForm))
	section(&b, "event queues")
	for i, q := range s.Queues {
		fmt.Fprintf(&b, "eq %d program %q pid %d waiting %d\n", i, q.Program, q.PID, q.Waiting)
	}
	section(&b, "completion queues")
	for _, q := range s.CQs {
		fmt.Fprintf(&b, "cq %d program %q pid %d users %d unpolled %d waiters %d failed %v moderation %d/%v held %d\n",
			q.Number, q.Program, q.PID, q.Users, q.Unpolled, q.Waiters, q.Failed, q.Count, q.Interval, q.Held)
	}
	section(&b, "shared receive queues")
	for _, q := range s.SRQs {
		fmt.Fprintf(&b, "srq 0x%x program %q pid %d users %d depth %d posted %d limit %d failed %v\n", uint32(q.Handle), q.Program, q.PID,
			q.Users, q.Depth, q.Posted, q.Limit, q.Failed)
	}
	leftOut(&b, s)
	return b.Bytes()
}

// Events returns the events that wait in the event queues.
func Events(at time.Time, s *device.Inspection) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# events at %s\n", at.Format(timeForm))
	for i, q := range s.Queues {
		for _, e := range q.Events {
			fmt.Fprintf(&b, "eq %d pid %d type %d object 0x%x adapter %d status %d\n", i, q.PID, e.Type, uint32(e.Object), e.Adapter,
				e.Status)
		}
		if n := q.Waiting - len(q.Events); n > 0 {
			fmt.Fprintf(&b, "eq %d pid %d: %d more\n", i, q.PID, n)
		}
	}
	return b.Bytes()
}

// Commands returns the latest commands that programs gave to an adapter, with their status.
func Commands(list []commandlog.Record) []byte {
	var b bytes.Buffer
	b.WriteString("# commands, the oldest first\n")
	for _, r := range list {
		status := "success"
		if r.Failure != command.Code(0) {
			status = r.Failure.String()
		}
		fmt.Fprintf(&b, "%s %s program %q pid %d took %v: %s\n", r.Began.Format(timeForm), r.Command, r.Program, r.PID, r.Took, status)
	}
	return b.Bytes()
}

// Trace returns the latest log events that concern an adapter, and the latest commands that it was given.
func Trace(log []events.Record, list []commandlog.Record) []byte {
	var b bytes.Buffer
	b.WriteString("# event log, the oldest first\n")
	for _, r := range log {
		fmt.Fprintf(&b, "%s %s 0x%04x %s %s\n", r.Time.Format(timeForm), r.Source, r.ID, r.Severity, r.Message)
	}
	b.WriteString("\n")
	b.Write(Commands(list))
	return b.Bytes()
}

func section(b *bytes.Buffer, name string) { fmt.Fprintf(b, "\n[%s]\n", name) }

func leftOut(b *bytes.Buffer, s *device.Inspection) {
	if s.LeftOut > 0 {
		fmt.Fprintf(b, "\n# %d objects are left out\n", s.LeftOut)
	}
}

// numbers appends every number in a structure, including nested ones, by name.
func numbers(list []register.Counter, prefix string, v reflect.Value) []register.Counter {
	t := v.Type()
	for i := range t.NumField() {
		f := t.Field(i)
		if !f.IsExported() {
			continue
		}
		switch x := v.Field(i); x.Kind() {
		case reflect.Struct:
			list = numbers(list, prefix+f.Name+".", x)
		case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uint:
			list = append(list, register.Counter{Name: prefix + f.Name, Value: x.Uint()})
		case reflect.Int, reflect.Int32, reflect.Int64:
			list = append(list, register.Counter{Name: prefix + f.Name, Value: uint64(x.Int())})
		}
	}
	return list
}
