package resource

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/driver/dump/register"
)

// state returns an adapter with two programs: 7 has the queue pairs 0x10 and 0x11 with queues of their own, 8 has 0x20, whose shared
// receive queue has the same handle as that of 7.
func state() *register.Port {
	qp := func(number, send, recv uint32, srq command.Handle, pid int) device.QPInspection {
		q := device.QPInspection{SendCQ: send, RecvCQ: recv, SRQ: srq, PID: pid, Program: "p"}
		q.Number, q.Type = number, command.RC
		return q
	}
	s := &device.Inspection{
		QPs:    []device.QPInspection{qp(0x10, 1, 2, 0, 7), qp(0x11, 1, device.NoQueue, 0x300, 7), qp(0x20, 3, 3, 0x300, 8)},
		CQs:    []device.CQInspection{{Number: 1, PID: 7}, {Number: 2, PID: 7}, {Number: 3, PID: 8}},
		SRQs:   []device.SRQInspection{{Handle: 0x300, PID: 7, Depth: 70}, {Handle: 0x300, PID: 8, Depth: 80}},
		MRs:    []device.MRInspection{{Key: 0x1234, PID: 7}, {Key: 0x1399, PID: 8}},
		Queues: []device.EventQueueInspection{{PID: 7}, {PID: 8}},
	}
	return &register.Port{Time: time.Unix(1, 0), Generation: "mlx5", Inspection: s}
}

func at(n uint32) *uint32 { return &n }

// said lists the segments of a dump that are objects, references and notices.
func said(t *testing.T, q Request) string {
	t.Helper()
	file, err := Dump(state(), q)
	if err != nil {
		t.Fatal(err)
	}
	parts, err := Read(file)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for line := range strings.Lines(string(Text(parts))) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "segment"):
			f := strings.Fields(line)
			list = append(list, f[2]+f[4])
		case strings.HasPrefix(line, "refers"):
			f := strings.Fields(line)
			list = append(list, ">"+f[4]+f[6])
		case strings.HasPrefix(line, "#"):
			list = append(list, line)
		}
	}
	return strings.Join(list, " ")
}

// TestObjects: an object is dumped by its number, several from one on, those that exist (0xfffe), or all (0xffff). References follow
// each object, and what they refer to follows down to the depth, each object once. Of two objects with one number both are dumped, and
// a reference is to that of the same program.
func TestObjects(t *testing.T) {
	const (
		first  = "(FULL_QPC)0x10 >(FULL_CQC)0x1 >(FULL_CQC)0x2"
		second = "(FULL_QPC)0x11 >(FULL_CQC)0x1 >(FULL_SRQC)0x300"
		third  = "(FULL_QPC)0x20 >(FULL_CQC)0x3 >(FULL_CQC)0x3 >(FULL_SRQC)0x300"
	)
	for name, c := range map[string]struct {
		q    Request
		want string
	}{
		"one":            {Request{Segment: 0x1000, Index1: at(0x11)}, second},
		"two":            {Request{Segment: 0x1000, Index1: at(0x10), Count1: 2}, first + " " + second},
		"some missing":   {Request{Segment: 0x1000, Index1: at(0x11), Count1: 4}, "# 3 objects do not exist " + second},
		"active":         {Request{Segment: 0x1000, Index1: at(0x11), Count1: Active}, second + " " + third},
		"active, none":   {Request{Segment: 0x1000, Index1: at(0x21), Count1: Active}, ""},
		"all":            {Request{Segment: 0x1000, Count1: All}, first + " " + second + " " + third},
		"depth 1":        {Request{Segment: 0x1000, Index1: at(0x10), Depth: 1}, first + " (FULL_CQC)0x1 >(FULL_EQC)0x0 (FULL_CQC)0x2 >(FULL_EQC)0x0"},
		"depth 2":        {Request{Segment: 0x1000, Index1: at(0x20), Depth: 2}, third + " (FULL_CQC)0x3 >(FULL_EQC)0x1 (FULL_SRQC)0x300 >(FULL_EQC)0x1 (FULL_EQC)0x1"},
		"regions":        {Request{Segment: 0x21, Index1: at(0x12)}, "(PRM_QUERY_MKEY)0x12"},
		"equal numbers":  {Request{Segment: 0x1100, Index1: at(0x300)}, "(FULL_SRQC)0x300 >(FULL_EQC)0x0 (FULL_SRQC)0x300 >(FULL_EQC)0x1"},
		"the last index": {Request{Segment: 0x1000, Index1: at(0x20), Count1: 0xfffd}, "# 65532 objects do not exist " + third},
	} {
		if got := said(t, c.q); got != c.want {
			t.Errorf("%s: %s\nwant %s", name, got, c.want)
		}
	}
	file, _ := Dump(state(), Request{Segment: 0x1000, Index1: at(0x20), Depth: 1})
	if text, _ := Read(file); !strings.Contains(string(Text(text)), "depth: 80") || strings.Contains(string(Text(text)), "depth: 70") {
		t.Errorf("the shared receive queue is not that of the queue pair's program:\n%s", Text(text))
	}
}

// TestMenu: the menu has every segment, with what it needs.
func TestMenu(t *testing.T) {
	file, err := Dump(state(), Request{Segment: Menu})
	if err != nil {
		t.Fatal(err)
	}
	parts, err := Read(file)
	if err != nil || len(parts) != 3 || len(parts[2].Menu) != len(Segments) {
		t.Fatal(err, parts)
	}
	for i, m := range parts[2].Menu {
		if s := Segments[i]; m != (MenuRecord{s.Type, s.Name, s.Index, true, true}) {
			t.Errorf("%+v, want that of %s", m, s.Name)
		}
	}
}

// TestRequests: what cannot be dumped is refused, with the field and what is allowed.
func TestRequests(t *testing.T) {
	for name, c := range map[string]struct {
		q              Request
		field, allowed string
	}{
		"no such segment":  {Request{Segment: 0x1001, Index1: at(1)}, "segment", "0x1000 (FULL_QPC)"},
		"virtual":          {Request{Segment: Monitoring, Index1: at(1)}, "segment", "0xffff"},
		"no index":         {Request{Segment: 0x1000}, "index1", "QPN"},
		"no index, active": {Request{Segment: 0x1000, Count1: Active}, "index1", "QPN"},
		"no object":        {Request{Segment: 0x1200, Index1: at(4)}, "index1", "3 objects of segment 0x1200, 0x1 to 0x3"},
		"index2":           {Request{Segment: 0x1200, Index1: at(1), Index2: at(0)}, "index2", "none"},
		"num_of_obj2":      {Request{Segment: 0x1200, Index1: at(1), Count2: 1}, "num_of_obj2", "none"},
		"menu, index":      {Request{Segment: Menu, Index1: at(1)}, "index1", "none"},
		"menu, many":       {Request{Segment: Menu, Count1: 2}, "num_of_obj1", "none"},
	} {
		_, err := Dump(state(), c.q)
		var wrong *RequestError
		if !errors.As(err, &wrong) || wrong.Field != c.field || !strings.Contains(wrong.Allowed, c.allowed) {
			t.Errorf("%s: %v, want %s and %s", name, err, c.field, c.allowed)
		}
	}
	empty := state()
	empty.Inspection.QPs = nil
	if _, err := Dump(empty, Request{Segment: 0x1000, Index1: at(1)}); err == nil || !strings.Contains(err.Error(), "there is none now") {
		t.Errorf("without objects: %v", err)
	}
}

// TestLeftOut: a dump says that not every object of the adapter could be listed.
func TestLeftOut(t *testing.T) {
	p := state()
	p.Inspection.LeftOut = 5
	file, err := Dump(p, Request{Segment: 0x1000, Count1: All})
	if err != nil {
		t.Fatal(err)
	}
	if parts, err := Read(file); err != nil || !slices.ContainsFunc(parts, func(x Part) bool { return x.Text == "5 objects left out" }) {
		t.Errorf("%v: nothing is said of the objects left out", err)
	}
	if _, err := Dump(p, Request{Segment: 0x1000, Index1: at(1)}); err == nil || !strings.Contains(err.Error(), "too many for a dump") {
		t.Errorf("an object that may have been left out: %v", err)
	}
}

// TestDamage: a file that was cut, or has what no dump has, is refused with the place.
func TestDamage(t *testing.T) {
	file, err := Dump(state(), Request{Segment: 0x1000, Count1: All, Depth: 9})
	if err != nil {
		t.Fatal(err)
	}
	var damage *DamageError
	rapid.Check(t, func(r *rapid.T) {
		n := rapid.IntRange(0, len(file)-1).Draw(r, "length")
		if _, err := Read(file[:n]); !errors.As(err, &damage) || damage.Offset > n {
			r.Errorf("%d bytes are read: %v", n, err)
		}
	})
	for name, other := range map[string][]byte{
		"behind the end": append(slices.Clone(file), 0, 0, 0, 1), "no segment": {0, 1, 0x10, 0x01}, "a menu of too many": {0, 2, 0xff, 0xff, 0, 0, 0xff, 0xff},
	} {
		if _, err := Read(other); !errors.As(err, &damage) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzRead: no file makes reading or showing it fail otherwise than with a place.
func FuzzRead(f *testing.F) {
	for _, q := range []Request{{Segment: Menu}, {Segment: 0x1000, Count1: All, Depth: 3}, {Segment: 0x21, Index1: at(0x12), Count1: 9}} {
		file, err := Dump(state(), q)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(file)
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		parts, err := Read(file)
		var damage *DamageError
		if err != nil && !errors.As(err, &damage) {
			t.Fatal(err)
		}
		Text(parts)
	})
}
