package mlx5cmd

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/softvpi/softvpi/internal/api"
)

// fetched is how many queue pairs are requested at a time.
const fetched = 1000

// connections implements -NdStat.
func (r *run) connections() (report, error) {
	if err := r.only("Name=", "Pid=", "Error"); err != nil {
		return nil, err
	}
	pid := 0
	if text := r.value("Pid"); text != "" {
		var err error
		if pid, err = strconv.Atoi(text); err != nil || pid < 1 {
			return nil, &api.FieldError{Field: "-Pid", Value: strconv.Quote(text), Allowed: "the number of a process"}
		}
	}
	list, err := r.adapters()
	if err != nil {
		return nil, err
	}
	out := blocks{}
	for _, a := range list {
		for q := (api.ConnectionQuery{Adapter: a.Name, Limit: fetched}); ; {
			page, err := r.client.Connections(r.ctx, q)
			if err != nil {
				return nil, err
			}
			for i := range page.Items {
				if c := &page.Items[i]; (pid == 0 || c.PID == pid) && wanted(c, r.has("Error")) {
					out.list = append(out.list, connection(a, c))
				}
			}
			if q.Offset += len(page.Items); len(page.Items) == 0 || q.Offset >= page.Total {
				break
			}
		}
	}
	out.notes = []string{fmt.Sprintf("%d connections", len(out.list))}
	if r.has("Error") {
		out.notes = []string{fmt.Sprintf("%d queue pairs in error", len(out.list))}
	}
	return out, nil
}

// wanted reports whether a queue pair is a connection or, with inError, in the error state.
func wanted(c *api.Connection, inError bool) bool {
	if inError {
		return c.State == "ERR"
	}
	return c.Type != "UD" && c.Peer.IsValid() && slices.Contains([]string{"RTR", "RTS", "SQD", "SQE"}, c.State)
}

func connection(a *api.AdapterStatus, c *api.Connection) block {
	b := block{title: fmt.Sprintf("Connection of adapter %q", a.Name), section: "connection", adapter: a.Name}
	peer := any(nil)
	if c.Peer.IsValid() {
		peer = c.Peer.String()
	}
	local := any(nil)
	if len(a.Addresses) > 0 {
		local = a.Addresses[0].String()
	}
	for _, f := range []field{
		{"Process Id", c.PID}, {"Process", c.Owner}, {"Local Address", local}, {"QPN", c.Number}, {"Remote Address", peer},
		{"Remote QPN", c.RemoteNumber}, {"Type", c.Type}, {"State", c.State}, {"Path", c.QPStatus.Path}, {"MTU", c.MTU},
		{"Send posted", c.SendPosted}, {"Receive posted", c.RecvPosted},
	} {
		b.add(f.name, f.value)
	}
	return b
}
