package driver

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/softvpi/softvpi/internal/api"
	apiserver "github.com/softvpi/softvpi/internal/api/server"
	"github.com/softvpi/softvpi/internal/catalogue"
	"github.com/softvpi/softvpi/internal/driver/dump"
	"github.com/softvpi/softvpi/internal/driver/dump/register"
	"github.com/softvpi/softvpi/internal/driver/dump/resource"
)

var _ apiserver.ResourceSource = (*Driver)(nil)

// coreDepth is how many levels of references the dump of a queue pair follows: its queues, and their event queue.
const coreDepth = 2

// ResourceSegments implements apiserver.ResourceSource.
func (d *Driver) ResourceSegments(adapter string) (list []api.ResourceSegment, err error) {
	if _, err := d.hasResources(adapter); err != nil {
		return nil, err
	}
	for _, s := range resource.Segments {
		list = append(list, api.ResourceSegment{Segment: s.Type, Name: s.Name, Index1: s.Index})
	}
	return list, nil
}

// hasResources returns the number of an adapter, which must be one that has resource dumps: WinOF-2's.
func (d *Driver) hasResources(adapter string) (uint32, error) {
	index, err := d.find(adapter)
	if err == nil && d.running[index].Generation != catalogue.MLX5 {
		err = fmt.Errorf("%w: mlx4 adapters have no resource dumps", api.ErrUnsupported)
	}
	return index, err
}

// DumpResource implements apiserver.ResourceSource.
func (d *Driver) DumpResource(adapter string, q api.ResourceDumpRequest) (out api.ResourceDump, err error) {
	index, err := d.hasResources(adapter)
	if err != nil {
		return out, err
	}
	files, parts, err := d.requested(index, &q)
	if err != nil {
		return out, err
	}
	r := d.running[index]
	i := dump.Incident{Device: d.cfg.Slot(int(index)).Device, Type: "RESOURCE", Source: dump.User, Reason: fmt.Sprintf("0x%x", q.Segment),
		Time: time.Now(), Total: int(d.now(r, "DumpMeNowTotalCount")), Preserved: int(d.now(r, "DumpMeNowPreservedCountMin"))}
	d.dumps.Lock()
	defer d.dumps.Unlock()
	if out.Directory, err = i.Write(filepath.Join(d.temp(), "resource"), files); err != nil {
		return api.ResourceDump{}, fmt.Errorf("resource dump: %w", err)
	}
	for _, f := range files {
		out.Files = append(out.Files, filepath.Join(out.Directory, f.Name()))
	}
	out.Objects = countResources(parts)
	return out, nil
}

// requested returns the files of a resource dump that was asked for, and what is in it.
func (d *Driver) requested(index uint32, q *api.ResourceDumpRequest) ([]dump.File, []resource.Part, error) {
	if q.Segment != resource.Monitoring {
		return d.resources(index, "resource", resource.Request{Segment: q.Segment, Index1: q.Index1, Count1: q.NumOfObj1,
			Index2: q.Index2, Count2: q.NumOfObj2, Depth: q.Depth})
	}
	if len(d.functions.of(index)) == 0 {
		return nil, nil, errNoFunctions(q)
	}
	list, err := d.functionWatch.batch(index, q)
	if err != nil {
		return nil, nil, err
	}
	s, err := d.host.Inspect(index, 0)
	if err != nil {
		return nil, nil, err
	}
	file := resource.Batch(uint32(s.Info.DeviceID), *q.Index1, *q.Index2, list)
	parts, err := resource.Read(file)
	return []dump.File{{Type: "resource", Text: file, Binary: true}, {Type: "resource", Text: resource.Text(parts)}}, parts, err
}

// resources returns a resource dump of an adapter as files of that type, the segments and their text, and what is in it.
func (d *Driver) resources(index uint32, kind string, q resource.Request) ([]dump.File, []resource.Part, error) {
	if err := q.Check(); err != nil {
		return nil, nil, wrongResource(err)
	}
	s, err := d.host.Inspect(index, dumpObjects)
	if err != nil {
		return nil, nil, err
	}
	file, err := resource.Dump(&register.Port{Time: time.Now(), Generation: generationOf(d.running[index]), Inspection: &s}, q)
	if err != nil {
		return nil, nil, wrongResource(err)
	}
	parts, err := resource.Read(file)
	if err != nil {
		return nil, nil, err
	}
	return []dump.File{{Type: kind, Text: file, Binary: true}, {Type: kind, Text: resource.Text(parts)}}, parts, nil
}

// wrongResource returns the error of a request for the management interface.
func wrongResource(err error) error {
	var wrong *resource.RequestError
	if errors.As(err, &wrong) {
		return api.Wrong(wrong.Field, wrong.Value, wrong.Allowed)
	}
	return err
}

// countResources counts the objects of a dump, in the order of the segments.
func countResources(parts []resource.Part) (list []api.DumpedResources) {
	for _, s := range resource.Segments {
		n := 0
		for i := range parts {
			if parts[i].Type == s.Type {
				n++
			}
		}
		if n > 0 {
			list = append(list, api.DumpedResources{Segment: s.Type, Name: s.Name, Count: n})
		}
	}
	return list
}

// coreOf returns the files of a queue pair with its queues, for a folder about an adapter.
func (d *Driver) coreOf(index, qp uint32) ([]dump.File, error) {
	files, _, err := d.resources(index, "core_qp", resource.Request{Segment: 0x1000, Index1: &qp, Depth: coreDepth})
	var wrong *api.FieldError
	if errors.As(err, &wrong) {
		wrong.Field = "qp"
	}
	return files, err
}
