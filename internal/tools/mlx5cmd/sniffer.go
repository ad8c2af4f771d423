package mlx5cmd

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/softvpi/softvpi/internal/api"
)

const snifferRing = 16 << 20

// sniffer implements -Sniffer: the driver writes the file, from -Start until -Stop or the driver's end.
func (r *run) sniffer() (report, error) {
	if err := r.only("Name=", "Start", "Stop", "Status", "FileName=", "QP=", "Comments"); err != nil {
		return nil, err
	}
	action, err := r.action("Start", "Stop", "Status")
	if err != nil {
		return nil, err
	}
	file := r.value("FileName")
	switch {
	case action == "Start" && file == "":
		return nil, r.usagef("-FileName is missing")
	case action != "Start" && file != "":
		return nil, r.usagef("-FileName goes with -Start")
	case action != "Start" && (r.has("QP") || r.has("Comments")):
		return nil, r.usagef("-QP and -Comments go with -Start")
	case r.has("Comments") && !r.has("QP"):
		return nil, r.usagef("-Comments needs -QP, the queue pair whose packets have comments")
	}
	qp, err := r.numberOf("QP", 24)
	if err != nil {
		return nil, err
	}
	a, err := r.adapter()
	if err != nil {
		return nil, err
	}
	running, err := r.sniffed(a)
	if err != nil {
		return nil, err
	}
	switch action {
	case "Stop":
		return r.stopSniffer(a, running)
	case "Status":
		return sniffers(a, running), nil
	}
	if len(running) > 0 {
		return nil, fmt.Errorf("a sniffer is already writing %s; -Sniffer -Name %q -Stop ends it", running[0].File, a.Name)
	}
	return r.startSniffer(a, file, qp)
}

// errNotSniffed says that no sniffer runs on an adapter.
var errNotSniffed = errors.New("no sniffer is running on this adapter")

// sniffed returns the captures of an adapter that the driver writes to files.
func (r *run) sniffed(a *api.AdapterStatus) (out []api.CaptureStatus, err error) {
	list, err := r.client.Captures(r.ctx)
	for _, c := range list {
		if c.Adapter == a.Name && c.File != "" {
			out = append(out, c)
		}
	}
	return out, err
}

// startSniffer begins to write a file: of the packets of a queue pair only, with comments if they are asked for, or of all if qp is nil.
func (r *run) startSniffer(a *api.AdapterStatus, file string, qp *uint64) (report, error) {
	file, err := filepath.Abs(file)
	if err != nil {
		return nil, err
	}
	q := api.CaptureRequest{Adapter: a.Name, Ring: snifferRing, Comments: r.has("Comments")}
	if qp != nil {
		if q.QP = uint32(*qp); q.QP == 0 {
			return nil, api.Wrong("-QP", "0", "1 to 16777215")
		}
	}
	c, err := r.client.CaptureToFile(r.ctx, q, file)
	if err != nil {
		return nil, err
	}
	return blocks{list: []block{{title: snifferTitle(a), adapter: a.Name, fields: []field{{"State", "started"}, {"File", c.File}}}},
		notes: []string{done}}, nil
}

func (r *run) stopSniffer(a *api.AdapterStatus, list []api.CaptureStatus) (report, error) {
	if len(list) == 0 {
		return nil, errNotSniffed
	}
	var out blocks
	var errs []error
	for _, c := range list {
		c, err := r.client.EndCapture(r.ctx, c.ID)
		if err == nil && c.Problem != "" {
			err = fmt.Errorf("%s is not complete: %s", c.File, c.Problem)
		}
		errs = append(errs, err)
		out.list = append(out.list, block{title: snifferTitle(a), adapter: a.Name, fields: []field{{"State", "stopped"}, {"File", c.File},
			{"Packets", c.Packets}, {"Missed", c.Missed}}})
	}
	out.notes = []string{done}
	return out, errors.Join(errs...)
}

// sniffers says whether one runs on an adapter, and what it has written.
func sniffers(a *api.AdapterStatus, list []api.CaptureStatus) report {
	out := blocks{notes: []string{done}}
	for _, c := range list {
		out.list = append(out.list, block{title: snifferTitle(a), adapter: a.Name, fields: []field{{"State", "running"}, {"File", c.File},
			{"Packets", c.Packets}, {"Missed", c.Missed}}})
		if c.Problem != "" {
			out.list[len(out.list)-1].add("Problem", c.Problem)
		}
	}
	if len(list) == 0 {
		out.list = []block{{title: snifferTitle(a), adapter: a.Name, fields: []field{{"State", "stopped"}}}}
	}
	return out
}

func snifferTitle(a *api.AdapterStatus) string { return fmt.Sprintf("Sniffer of adapter %q", a.Name) }
