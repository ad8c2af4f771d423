package snapshot

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/counters"
	"github.com/softvpi/softvpi/internal/events"
)

const (
	eventsShown      = 500
	connectionsShown = 1000
)

var keyFields = []string{"Registry Key", "In force", "Stored", "Default", "Pending", "Effect", "Status", "Problem"}

// running reports about a running driver.
func (r *report) running(ctx context.Context, c *api.Client, s *api.Status) {
	d := r.section("Driver", "Property", "Value")
	d.add("Version", s.Version)
	d.add("Process", s.PID)
	d.add("Running since", s.Started.Format("2006-01-02 15:04:05 MST"))
	d.add("Socket", s.Socket)
	if s.Attach != "" {
		d.add("Programs cannot attach", s.Attach)
	}
	if s.Volatile != "" {
		d.add("Nothing is kept", s.Volatile)
	}
	for i := range s.Adapters {
		r.adapter(&s.Adapters[i])
	}
	reg, err := c.LoadRegistry(ctx)
	for i := range s.Adapters {
		a := &s.Adapters[i]
		r.settings(ctx, c, a)
		t := r.section("Device configuration of "+a.Name, "Parameter", "Current", "New", "Default", "Status")
		if err != nil {
			t.Note = err.Error()
			continue
		}
		for _, p := range a.Parameters(reg) {
			t.add(p.Name, orNotSet(p.Current), orNotSet(p.New), p.Default, p.Status)
		}
	}
	r.counters(ctx, c)
	r.connections(ctx, c)
	p := r.section("Programs", "Name", "Process", "User", "Memory is reached by", "Arena bytes")
	for _, x := range s.Programs {
		p.add(x.Name, x.PID, x.UID, x.MemoryPath, x.ArenaBytes)
	}
	var page events.Page
	err = c.Get(ctx, "/events", events.Query{Limit: eventsShown}.Values(), &page)
	r.events(page, err)
}

func orNotSet(n *uint64) string {
	if n == nil {
		return "N/A"
	}
	return strconv.FormatUint(*n, 10)
}

func yes(b bool) string {
	if b {
		return "Yes"
	}
	return "No"
}

func (r *report) adapter(a *api.AdapterStatus) {
	t := r.section("Adapter "+a.Name, "Property", "Value")
	var addrs, gids []string
	for _, x := range a.Addresses {
		addrs = append(addrs, x.String())
	}
	for _, g := range a.GIDs {
		gids = append(gids, fmt.Sprintf("%d: %s (RoCE %s)", g.Index, g.GID, g.RoCE))
	}
	for _, f := range [][2]any{
		{"Generation", a.Generation}, {"Device", a.DeviceName}, {"Port", fmt.Sprintf("%d of %d", a.Port, a.Ports)},
		{"Location", a.Location().Text()}, {"Addresses", strings.Join(addrs, ", ")}, {"Enabled", yes(a.Enabled)},
		{"Link up", yes(a.Up)}, {"RoCE", a.RoCE}, {"Active MTU", a.ActiveMTU}, {"Link MTU", a.LinkMTU}, {"UDP port", a.UDPPort},
		{"Node GUID", fmt.Sprintf("%016x", a.NodeGUID)}, {"GUID", fmt.Sprintf("%016x", a.GUID)}, {"Restart pending", yes(a.Pending)},
		{"Path", a.Path}, {"Impairment", a.Impairment},
		{"Source ports", a.SourcePorts}, {"GIDs", strings.Join(gids, "\n")}, {"Objects", objects(a.Objects)},
		{"Packets sent", a.Link.SentPackets}, {"Packets received", a.Link.ReceivedPackets}, {"Retransmits", a.Retransmits},
	} {
		t.add(f[0], f[1])
	}
}

// objects returns how many of each kind there are, sorted by kind: "cq: 2, qp: 1".
func objects(count map[string]int) string {
	var out []string
	for _, kind := range slices.Sorted(maps.Keys(count)) {
		out = append(out, fmt.Sprintf("%s: %d", kind, count[kind]))
	}
	return strings.Join(out, ", ")
}

func (r *report) settings(ctx context.Context, c *api.Client, a *api.AdapterStatus) {
	t := r.section("Registry of "+a.Name, keyFields...)
	list, err := c.Settings(ctx, a.Name)
	if err != nil {
		t.Note = err.Error()
	}
	for _, s := range list {
		stored := ""
		if s.Stored != nil {
			stored = *s.Stored
		}
		t.add(s.Path+`\`+s.Name, s.Value, stored, s.Default, yes(s.Pending), s.Effect, s.Status, s.Problem)
	}
}

func (r *report) counters(ctx context.Context, c *api.Client) {
	t := r.section("Counters", "Set", "Instance", "Counter", "Value")
	var s counters.Snapshot
	if err := c.Get(ctx, "/counters", url.Values{}, &s); err != nil {
		t.Note = err.Error()
		return
	}
	t.Note = "Counters without a value are left out; those of rates are the totals behind them."
	for _, i := range s.Instances {
		for _, v := range i.Values {
			if v.Raw != nil {
				t.add(i.Set, i.Name, v.Counter, *v.Raw)
			}
		}
	}
}

func (r *report) connections(ctx context.Context, c *api.Client) {
	t := r.section("Queue pairs", "Adapter", "Number", "Type", "State", "Owner", "Process", "Peer", "Remote number", "Path", "MTU",
		"Send posted", "Receive posted")
	page, err := c.Connections(ctx, api.ConnectionQuery{Limit: connectionsShown})
	if err != nil {
		t.Note = err.Error()
	}
	if page.Total > len(page.Items) {
		t.Note = fmt.Sprintf("%d of %d.", len(page.Items), page.Total)
	}
	for i := range page.Items {
		q := &page.Items[i]
		t.add(q.Adapter, q.Number, q.Type, q.State, q.Owner, q.PID, q.PeerName(), q.RemoteNumber, q.QPStatus.Path, q.MTU, q.SendPosted,
			q.RecvPosted)
	}
}

func (r *report) events(page events.Page, err error) {
	t := r.section("Events", "Time", "Severity", "Source", "ID", "Event", "Message")
	switch {
	case err != nil:
		t.Note = err.Error()
	case page.NotKept != "" && r.Running:
		t.Note = "Events are not kept on disk: " + page.NotKept
	case len(page.Events) == eventsShown:
		t.Note = fmt.Sprintf("The newest %d.", eventsShown)
	}
	for i := len(page.Events) - 1; i >= 0; i-- {
		e := page.Events[i]
		t.add(e.Time.Format("2006-01-02 15:04:05.000"), e.Severity, e.Source, events.Hex(e.ID), e.Symbol, e.Message)
	}
}
