package resource

import (
	"fmt"
	"math"

	"github.com/softvpi/softvpi/internal/driver/dump/register"
)

// Request is what is asked for.
type Request struct {
	Segment uint16
	// Index1 is the number of the first object, and Count1 how many there are from it on: 0 means 1. Nil: none was given.
	Index1 *uint32
	Count1 uint16
	// Index2 and Count2 name parts of an object. No segment has such.
	Index2 *uint32
	Count2 uint16
	// Depth is how many levels of references are followed: 0 none.
	Depth uint32
}

// RequestError says what of a request is not allowed.
type RequestError struct{ Field, Value, Allowed string }

func (e *RequestError) Error() string {
	return fmt.Sprintf("%s is %s; allowed: %s", e.Field, e.Value, e.Allowed)
}

// object is one that is dumped.
type object struct {
	segment *Segment
	index   uint32
	record  []uint32
}

// adapter is the state of an adapter at one moment.
type adapter struct {
	objects map[uint16][]object
	by      map[column]map[uint64][]object // by the value of a field
	leftOut int
}

// column is a field of a segment.
type column struct {
	segment uint16
	field   string
}

func newAdapter(p *register.Port) *adapter {
	a := &adapter{objects: map[uint16][]object{}, by: map[column]map[uint64][]object{}, leftOut: p.Inspection.LeftOut}
	for _, s := range Segments {
		for i, record := range s.block.Records(p) {
			a.objects[s.Type] = append(a.objects[s.Type], object{s, s.number(i, s.block.Values(record)), record})
		}
	}
	return a
}

// Check returns the error of a request that no adapter can answer, a *RequestError.
func (q *Request) Check() error {
	s := SegmentOf(q.Segment)
	segment := fmt.Sprintf("segment 0x%x", q.Segment)
	switch {
	case s == nil && q.Segment != Menu:
		return &RequestError{"segment", fmt.Sprintf("0x%x", q.Segment), allowedSegments()}
	case q.Index2 != nil:
		return &RequestError{"index2", fmt.Sprint(*q.Index2), "none: " + segment + " has no second index"}
	case q.Count2 != 0:
		return &RequestError{"num_of_obj2", fmt.Sprint(q.Count2), "none: " + segment + " has no second index"}
	case s == nil && q.Index1 != nil:
		return &RequestError{"index1", fmt.Sprint(*q.Index1), "none: " + segment + " lists the segments"}
	case s == nil && q.Count1 != 0:
		return &RequestError{"num_of_obj1", fmt.Sprint(q.Count1), "none: " + segment + " lists the segments"}
	case s != nil && q.Index1 == nil && q.Count1 != All:
		return &RequestError{"index1", "missing", fmt.Sprintf("the %s of an object of %s; none with num_of_obj1 0xffff, all", s.Index, segment)}
	}
	return nil
}

// pick returns the objects that are asked for, and how many of them are not there.
func (q *Request) pick(a *adapter) (list []object, missing int, err error) {
	all := a.objects[q.Segment]
	if q.Count1 == All {
		return all, 0, nil
	}
	first, count := *q.Index1, uint64(max(q.Count1, 1))
	last := uint64(first) + count - 1
	if q.Count1 == Active {
		last = math.MaxUint32
	}
	seen := map[uint32]bool{}
	for _, o := range all {
		if o.index >= first && uint64(o.index) <= last {
			list, seen[o.index] = append(list, o), true
		}
	}
	if q.Count1 == Active {
		return list, 0, nil
	}
	if missing = int(count) - len(seen); len(list) > 0 {
		return list, missing, nil
	}
	return nil, 0, &RequestError{"index1", fmt.Sprintf("0x%x", first), q.existing(a, all)}
}

// existing says which objects there are.
func (q *Request) existing(a *adapter, all []object) string {
	s := SegmentOf(q.Segment)
	if len(all) == 0 {
		return fmt.Sprintf("the %s of an object of segment 0x%x; there is none now", s.Index, s.Type)
	}
	low, high := all[0].index, all[0].index
	for _, o := range all {
		low, high = min(low, o.index), max(high, o.index)
	}
	text := fmt.Sprintf("the %s of one of the %d objects of segment 0x%x, 0x%x to 0x%x", s.Index, len(all), s.Type, low, high)
	if a.leftOut > 0 {
		text += fmt.Sprintf("; %d objects are too many for a dump", a.leftOut)
	}
	return text
}

// refersTo returns the objects that an object refers to.
func (a *adapter) refersTo(o *object) (list []object) {
	if o.segment.refers == nil {
		return nil
	}
	for _, w := range o.segment.refers(o.segment.block.Values(o.record)) {
		for _, x := range a.having(column{w.segment, w.field})[w.value] {
			if w.pid == 0 || values(x.segment.block.Values(x.record)).of("pid") == w.pid {
				list = append(list, x)
			}
		}
	}
	return list
}

// having returns the objects of a segment by the value that they have in a field.
func (a *adapter) having(c column) map[uint64][]object {
	m := a.by[c]
	if m == nil {
		m = map[uint64][]object{}
		for _, x := range a.objects[c.segment] {
			v := values(x.segment.block.Values(x.record)).of(c.field)
			m[v] = append(m[v], x)
		}
		a.by[c] = m
	}
	return m
}
