package mlx5cmd

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/softvpi/softvpi/internal/api"
)

// numberOf reads an option that is a number, in the bases of Go, of so many bits; nil: it is not given.
func (r *run) numberOf(option string, bits int) (*uint64, error) {
	text := r.value(option)
	if text == "" {
		return nil, nil
	}
	n, err := strconv.ParseUint(text, 0, bits)
	if err != nil {
		return nil, api.Wrong("-"+option, strconv.Quote(text), fmt.Sprintf("a number from 0 to 0x%x", uint64(math.MaxUint64)>>(64-bits)))
	}
	return &n, nil
}

// resourceDump implements -Dbg -ResourceDump: -Query lists the segments, -Dump writes objects.
func (r *run) resourceDump() (report, error) {
	if err := r.only("Name=", "Query", "Dump", "Segment=", "Index1=", "NumOfObj1=", "Index2=", "NumOfObj2=", "Depth="); err != nil {
		return nil, err
	}
	action, err := r.action("Query", "Dump")
	if err != nil {
		return nil, err
	}
	if action == "Query" {
		for _, name := range []string{"Segment", "Index1", "NumOfObj1", "Index2", "NumOfObj2", "Depth"} {
			if r.has(name) {
				return nil, r.usagef("-%s goes with -Dump", name)
			}
		}
		return r.resourceSegments()
	}
	q, err := r.resourceRequest()
	if err != nil {
		return nil, err
	}
	return r.dumpResources(q)
}

// resourceSegments lists what can be dumped, in the words of a card's menu.
func (r *run) resourceSegments() (report, error) {
	adapters, err := r.adapters()
	if err != nil {
		return nil, err
	}
	var out blocks
	for _, a := range adapters {
		list, err := r.client.ResourceSegments(r.ctx, a.Name)
		if err != nil {
			return nil, err
		}
		for _, s := range list {
			out.list = append(out.list, block{title: fmt.Sprintf("Segment Type - 0x%04x (%s)", s.Segment, s.Name), section: s.Name,
				adapter: a.Name, fields: []field{{"adapter", a.Name}, {"index1 (" + s.Index1 + ")", "Mandatory"},
					{"num_of_obj1", "Optional: a number, active (0xfffe), all (0xffff)"}, {"index2", nil}, {"num_of_obj2", nil}}})
		}
	}
	return out, nil
}

func (r *run) resourceRequest() (q api.ResourceDumpRequest, err error) {
	var numbers [6]*uint64
	for i, o := range []struct {
		name string
		bits int
	}{{"Segment", 16}, {"Index1", 32}, {"NumOfObj1", 16}, {"Index2", 32}, {"NumOfObj2", 16}, {"Depth", 32}} {
		if numbers[i], err = r.numberOf(o.name, o.bits); err != nil {
			return q, err
		}
	}
	segment, index1, count1, index2, count2, depth := numbers[0], numbers[1], numbers[2], numbers[3], numbers[4], numbers[5]
	if segment == nil {
		return q, r.usagef("-Segment is missing")
	}
	q = api.ResourceDumpRequest{Segment: uint16(*segment), Index1: narrow(index1), Index2: narrow(index2)}
	for _, x := range []struct {
		to   *uint16
		from *uint64
	}{{&q.NumOfObj1, count1}, {&q.NumOfObj2, count2}} {
		if x.from != nil {
			*x.to = uint16(*x.from)
		}
	}
	if depth != nil {
		q.Depth = uint32(*depth)
	}
	return q, nil
}

func narrow(n *uint64) *uint32 {
	if n == nil {
		return nil
	}
	x := uint32(*n)
	return &x
}

// dumpResources dumps of the adapter that is named, or of each that has what is asked for.
func (r *run) dumpResources(q api.ResourceDumpRequest) (report, error) {
	adapters, err := r.adapters()
	if err != nil {
		return nil, err
	}
	out := blocks{notes: []string{done}}
	var without error
	for _, a := range adapters {
		d, err := r.client.DumpResource(r.ctx, a.Name, q)
		if errors.Is(err, api.ErrUnsupported) {
			without = err
			out.notes = append(out.notes, fmt.Sprintf("adapter %q: %v", a.Name, err))
			continue
		}
		if err != nil {
			return nil, asOptions(err)
		}
		b := block{title: fmt.Sprintf("Resource dump of adapter %q", a.Name), section: "resource", adapter: a.Name}
		b.add("Folder", d.Directory)
		for i, f := range d.Files {
			b.add(fmt.Sprintf("File[%d]", i), f)
		}
		for _, o := range d.Objects {
			b.add(fmt.Sprintf("Segment 0x%04x (%s)", o.Segment, o.Name), o.Count)
		}
		out.list = append(out.list, b)
	}
	if len(out.list) == 0 && without != nil {
		return nil, without
	}
	return out, nil
}

// asOptions names the options of the tool instead of the fields of the request.
func asOptions(err error) error {
	var wrong *api.FieldError
	if !errors.As(err, &wrong) {
		return err
	}
	if name := map[string]string{"segment": "-Segment", "index1": "-Index1", "index2": "-Index2", "num_of_obj1": "-NumOfObj1",
		"num_of_obj2": "-NumOfObj2", "qp": "-" + coreOption}[wrong.Field]; name != "" {
		return api.Wrong(name, wrong.Value, wrong.Allowed)
	}
	return err
}

// coreOption names a queue pair. The manual prints its number right behind it.
const coreOption = "CoreDumpQP"

// separated splits -CoreDumpQP<number> into the option and its value.
func separated(list []option) []option {
	out := make([]option, len(list))
	for i, o := range list {
		if n := len(coreOption); len(o.name) > n && !o.has && strings.EqualFold(o.name[:n], coreOption) {
			o = option{name: coreOption, value: o.name[n:], has: true}
		}
		out[i] = o
	}
	return out
}
