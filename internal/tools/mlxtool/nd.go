package mlxtool

import (
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/tools/tool"
)

const (
	defaultFetch = 1000
	maxFetch     = 10000
	defaultPause = 2 * time.Second
)

// connectionOptions are those of show nd connections.
type connectionOptions struct {
	address netip.Addr
	pid     int
	errors  bool
	count   int
	pause   time.Duration
}

func (r *run) connections() (report, error) {
	o, err := r.connectionOptions()
	if err != nil {
		return nil, err
	}
	q := api.ConnectionQuery{Sort: "number", Limit: o.count}
	if err := r.status(); err != nil {
		return nil, err
	}
	if q.Adapter, err = r.withAddress(o.address); err != nil {
		return nil, err
	}
	switch {
	case o.errors:
		q.Search = stateError
	case o.pid > 0:
		q.Search = strconv.Itoa(o.pid)
	}
	t := table{
		Fields: []string{"Process Id", "Process", "Adapter", "Local Address", "QPN", "Remote Address", "Remote QPN", "Type", "State",
			"Path"},
		Empty: "no connections",
	}
	if o.errors {
		t.Empty = "no queue pairs in error"
	}
	for {
		page, err := r.client.Connections(r.ctx, q)
		if err != nil {
			return nil, err
		}
		for i := range page.Items {
			if c := &page.Items[i]; o.wants(c) {
				t.add(c.PID, c.Owner, c.Adapter, r.local(c.Adapter), c.Number, remote(c), remoteNumber(c), c.Type, c.State, c.QPStatus.Path)
			}
		}
		q.Offset += len(page.Items)
		if len(page.Items) == 0 || q.Offset >= page.Total {
			return report{t}, nil
		}
		if o.errors {
			if err := r.sleep(o.pause); err != nil {
				return nil, err
			}
		}
	}
}

func (r *run) connectionOptions() (o connectionOptions, err error) {
	f := tool.NewFlags(tool.Env{Name: name, Args: r.args, Stdout: r.env.Stdout, Stderr: r.env.Stderr}, "")
	for _, name := range []string{"a", "address"} {
		f.Addr(&o.address, name, "of the adapter")
	}
	for _, name := range []string{"p", "pid"} {
		f.Int(&o.pid, name, 0, 1, 1<<31-1, "of the process")
	}
	for _, name := range []string{"e", "error"} {
		f.BoolVar(&o.errors, name, false, "queue pairs in error")
	}
	for _, name := range []string{"n", "count"} {
		f.Int(&o.count, name, defaultFetch, 1, maxFetch, "fetched at a time")
	}
	for _, name := range []string{"t", "time"} {
		f.Seconds(&o.pause, name, "between two fetches")
	}
	if err := f.Read(); err != nil {
		return o, tool.Usagef("%s: %s", r.command.Name, err)
	}
	if err := f.NoArguments(); err != nil {
		return o, tool.Usagef("%s: %s", r.command.Name, err)
	}
	if o.pause != 0 && !o.errors {
		return o, tool.Usagef("%s: -t goes only with -e", r.command.Name)
	}
	if o.pause == 0 {
		o.pause = defaultPause
	}
	return o, nil
}

// withAddress returns the name of the adapter with an address; "" for the zero address.
func (r *run) withAddress(addr netip.Addr) (string, error) {
	if !addr.IsValid() {
		return "", nil
	}
	var there string
	for _, a := range r.all() {
		if slices.Contains(a.Addresses, addr) {
			return a.Name, nil
		}
		for _, x := range a.Addresses {
			there += ", " + x.String()
		}
	}
	return "", &api.FieldError{Field: "-a", Value: addr.String(), Allowed: "an address of an adapter" + there}
}

// stateError is the driver's name of the error state of a queue pair.
const stateError = "ERR"

// connected lists the states of queue pairs with a peer.
var connected = []string{"RTR", "RTS", "SQD", "SQE"}

// wants reports whether a queue pair is requested: one in error, or a connection.
func (o *connectionOptions) wants(c *api.Connection) bool {
	if o.pid > 0 && c.PID != o.pid {
		return false
	}
	if o.errors {
		return c.State == stateError
	}
	return c.Type != "UD" && c.Peer.IsValid() && slices.Contains(connected, c.State)
}

func (r *run) local(adapter string) any {
	for _, a := range r.all() {
		if a.Name == adapter {
			return address(a)
		}
	}
	return notKnown
}

func remote(c *api.Connection) any {
	if !c.Peer.IsValid() {
		return notKnown
	}
	return c.Peer.String()
}

func remoteNumber(c *api.Connection) any {
	if !c.Peer.IsValid() {
		return notKnown
	}
	return c.RemoteNumber
}

// sleep waits, unless the user stops the tool.
func (r *run) sleep(d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-r.ctx.Done():
		return r.ctx.Err()
	}
}
