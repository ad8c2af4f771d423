package web

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/fabric/state"
)

// fabricView is what the page of a fabric shows.
type fabricView struct {
	Names   []string // of those that run
	Name    string   // of the one shown; empty: none runs
	Timed   bool
	Drawing *drawing // nil: there are too many ports
	Ports   int
	Busiest []fabricPort // the ports that carry, keep or have lost most
	Chosen  *fabricPort  // nil: none
	// Other is the other end of its link.
	Other    *fabricPort
	Commands []fabricCommand
	// Deadlock names queues that wait for each other now, and Incidents are the last pauses that did not end, the newest first.
	Deadlock  string
	Incidents []fabricIncident
}

// fabricIncident is an incident as it is shown.
type fabricIncident struct {
	Ago, Text string
	Over      bool
}

// mostShown is how many incidents are shown.
const mostShown = 10

// tell shows what a fabric says of itself as a whole.
func (d *fabricView) tell(part *state.Part) {
	d.Timed, d.Ports, d.Deadlock = part.Timed, len(part.Ports), part.Deadlock
	for _, x := range slices.Backward(part.Incidents) {
		if len(d.Incidents) == mostShown {
			break
		}
		ago := time.Duration(part.Now - x.At).Round(time.Second)
		d.Incidents = append(d.Incidents, fabricIncident{ago.String(), sentence(x.String()), x.Over})
	}
}

// fabricPort is a port with what it has done since the reading before.
type fabricPort struct {
	state.Port
	Name string
	// In and Out are rates in bits per second, Use the larger of them as a share of the link's.
	In, Out float64
	Use     float64
	// Lost, Pauses and Errors are what has come since the reading before.
	Lost, Pauses, Errors uint64
	Link                 string // chooses it
}

// fabricCommand is a command that a button gives for the chosen port.
type fabricCommand struct {
	Title string
	Words []string
	Mends bool // it undoes what others do
}

// Text returns the command as it is typed.
func (c fabricCommand) Text() string {
	words := slices.Clone(c.Words)
	for i, w := range words {
		if strings.ContainsAny(w, "[] ") {
			words[i] = "'" + w + "'"
		}
	}
	return strings.Join(words, " ")
}

// readings are the last readings of fabrics, from which rates are worked out. There are few, whoever reads.
type readings struct {
	mu  sync.Mutex
	all map[string][]reading // of a fabric, the oldest first
}

// reading is what ports had counted at a time of the fabric.
type reading struct {
	now   int64 // ns since the fabric began
	ports map[string]state.Port
}

const (
	// mostReadings is of how many fabrics there are readings, and keptReadings how many of each.
	mostReadings, keptReadings = 8, 3
	// between is how far apart two readings are at least: several pages may read.
	between = 500 * time.Millisecond
	// busiest is how many ports are listed.
	busiest = 12
)

// since returns a reading before this one, and keeps this one for later.
func (r *readings) since(name string, now reading) (before reading) {
	r.mu.Lock()
	defer r.mu.Unlock()
	kept := slices.DeleteFunc(r.all[name], func(x reading) bool { return x.now > now.now }) // another fabric of the name
	for _, x := range kept {
		if now.now-x.now >= int64(between) {
			before = x
		}
	}
	if len(kept) == 0 || now.now-kept[len(kept)-1].now >= int64(between) {
		kept = append(kept, now)
	}
	if r.all == nil || len(r.all) >= mostReadings && r.all[name] == nil {
		r.all = map[string][]reading{}
	}
	r.all[name] = kept[max(0, len(kept)-keptReadings):]
	return before
}

// portName names a port as commands do.
func portName(p *state.Port) string {
	if p.Host && !p.InfiniBand {
		return p.Node
	}
	return fmt.Sprintf("%s[%d]", p.Node, p.Port)
}

// read returns the ports of a fabric with their rates.
func (s *Server) readFabric(q *request, name string) (ports []fabricPort, part state.Part, err error) {
	if part, err = s.client.Fabric(q.r.Context(), name); err != nil {
		return nil, part, err
	}
	now := reading{now: part.Now, ports: map[string]state.Port{}}
	for i := range part.Ports {
		now.ports[portName(&part.Ports[i])] = part.Ports[i]
	}
	before := s.readings.since(name, now)
	seconds := float64(now.now-before.now) / 1e9
	for i := range part.Ports {
		p := fabricPort{Port: part.Ports[i], Name: portName(&part.Ports[i])}
		p.Link = fabricURL(name, p.Name)
		if b, ok := before.ports[p.Name]; ok && b.InBytes <= p.InBytes && b.OutBytes <= p.OutBytes {
			p.In, p.Out = 8*float64(p.InBytes-b.InBytes)/seconds, 8*float64(p.OutBytes-b.OutBytes)/seconds
			p.Lost = drops(&p.Port) - min(drops(&b), drops(&p.Port))
			p.Pauses = p.PausesSent - min(b.PausesSent, p.PausesSent)
			p.Errors = p.Port.Errors - min(b.Errors, p.Port.Errors)
		}
		full := float64(p.Rate)
		if !part.Timed || full == 0 {
			full = unlimited
		}
		p.Use = min(max(p.In, p.Out)/full, 1)
		ports = append(ports, p)
	}
	return ports, part, nil
}

// unlimited is what fills a link whose rate is not kept, in bits per second, for its colour.
const unlimited = 10e9

func drops(p *state.Port) uint64 {
	return p.QueueDrops + p.BufferDrops + p.HeadroomDrops + p.TooLong + p.Lost
}

// fabricURL returns the URL of the page of a fabric with a port.
func fabricURL(name, port string) string {
	v := url.Values{"name": {name}}
	if port != "" {
		v.Set("port", port)
	}
	return Prefix + "fabric?" + v.Encode()
}

// fabric shows a fabric that runs on this machine: its topology, and a port of it.
func (s *Server) fabric(q *request) error { return s.showFabric(q, nil) }

func (s *Server) showFabric(q *request, wrong error) error {
	v, err := s.view(q, "Fabric", "fabric")
	if err != nil {
		return err
	}
	d := &fabricView{Name: q.r.FormValue("name")}
	if d.Names, err = s.client.Fabrics(q.r.Context()); err != nil {
		return err
	}
	if wrong != nil {
		v.Problem = sentence(wrong.Error())
	}
	if d.Name == "" && len(d.Names) > 0 {
		d.Name = d.Names[0]
	}
	if d.Name != "" && !slices.Contains(d.Names, d.Name) {
		return &missingError{"fabric " + d.Name + " that runs"}
	}
	if d.Name != "" {
		ports, part, err := s.readFabric(q, d.Name)
		if err != nil {
			return err
		}
		d.tell(&part)
		d.fill(ports, q.r.FormValue("port"))
	}
	v.Data = d
	return s.show(q, "fabric", v)
}

// fill puts ports into the view, one of which is chosen.
func (d *fabricView) fill(ports []fabricPort, chosen string) {
	for i := range ports {
		if ports[i].Name == chosen {
			d.Chosen = &ports[i]
		}
	}
	if d.Chosen != nil {
		for i := range ports {
			if ports[i].Name == d.Chosen.Peer {
				d.Other = &ports[i]
			}
		}
		d.Commands = commandsFor(d.Chosen, d.Timed)
	}
	d.Drawing = draw(ports, chosen)
	d.Busiest = slices.Clone(ports)
	slices.SortStableFunc(d.Busiest, func(a, b fabricPort) int {
		for _, c := range [][2]float64{{float64(b.Lost), float64(a.Lost)}, {float64(b.Pauses), float64(a.Pauses)},
			{float64(b.Queued), float64(a.Queued)}, {b.Out, a.Out}} {
			if c[0] != c[1] {
				if c[0] > c[1] {
					return 1
				}
				return -1
			}
		}
		return 0
	})
	d.Busiest = d.Busiest[:min(busiest, len(d.Busiest))]
}

// commandsFor lists commands that break the link of a port, and mend it.
func commandsFor(p *fabricPort, timed bool) (all []fabricCommand) {
	add := func(mends bool, title string, words ...string) {
		all = append(all, fabricCommand{title, words, mends})
	}
	add(false, "Pull the cable", "unlink", p.Name)
	add(true, "Put it back in", "relink", p.Name)
	if !p.InfiniBand {
		add(false, "Flap for 200 ms", "flap", p.Name, "200ms")
	}
	add(false, "Lose 1 %", "loss", p.Name, "1%")
	add(true, "Lose nothing", "loss", p.Name, "0")
	if p.InfiniBand {
		return all
	}
	if timed && p.Rate >= 10e6 {
		add(false, "A tenth of the rate", "rate", p.Name, fmt.Sprintf("%dMb/s", p.Rate/10e6))
	}
	if p.Host {
		add(false, "Take nothing", "take", p.Node, "none")
		add(true, "Take all", "take", p.Node, "all")
	}
	if !p.Host {
		add(false, "Mark from 20 KB on", "set", p.Name, "all", "kmin=20KB", "kmax=200KB", "pmax=10%")
		add(true, "Mark nothing", "set", p.Name, "all", "kmin=0", "kmax=0", "pmax=0%")
		add(false, "Pause at 60 KB", "set", p.Name, "all", "xoff=60KB")
		add(true, "Pause at 1/8 of the free buffer", "set", p.Name, "all", "xoff_alpha=0.125")
	}
	add(false, "Pause storm of priority 3", "storm", p.Name, "3")
	add(true, "No storm", "storm", p.Name, "none")
	add(false, "No PFC", "pfc", p.Name, "none")
	add(true, "PFC of priority 3", "pfc", p.Name, "3")
	return all
}

// commandFabric gives a command, and goes back to the port.
func (s *Server) commandFabric(q *request) error {
	form := q.r.PostForm
	name, port := form.Get("name"), form.Get("port")
	words := strings.Fields(form.Get("command"))
	if len(words) == 0 {
		return &api.FieldError{Field: "command", Value: "none", Allowed: "one of the page's"}
	}
	if _, err := s.client.CommandFabric(q.r.Context(), name, words...); err != nil {
		return s.showFabric(q, err)
	}
	return s.done(q, "Done: "+strings.Join(words, " ")+".", fabricURL(name, port))
}

// Dropped returns how many frames had no room or were damaged since the fabric began.
func (p fabricPort) Dropped() uint64 { return drops(&p.Port) }

// Facts lists what a port is like and has counted.
func (p fabricPort) Facts() (all []fact) {
	add := func(name, format string, args ...any) { all = append(all, fact{name, fmt.Sprintf(format, args...)}) }
	up := map[bool]string{true: "up", false: "down"}
	add("State", "%s", up[p.Up])
	if p.InfiniBand {
		add("InfiniBand", "%s %s", p.State, p.Width)
	}
	if p.Rate > 0 {
		add("Rate", "%s", bitsText(float64(p.Rate)))
	}
	if p.Program != "" {
		add("Adapter of", "%s", p.Program)
	}
	add("Receives", "%s", bitsText(p.In))
	add("Sends", "%s", bitsText(p.Out))
	add("Received", "%d frames, %s", p.InFrames, bytesText(int(p.InBytes)))
	add("Sent", "%d frames, %s", p.OutFrames, bytesText(int(p.OutBytes)))
	if p.InfiniBand {
		add("Errors", "%d, and %d packets discarded", p.Port.Errors, p.QueueDrops)
		return append(all, p.faults()...)
	}
	add("Queue", "%s, %s at most", bytesText(p.Queued), bytesText(p.Peak))
	add("Marked", "%d", p.Marked)
	add("Dropped", "%d at queues, %d in the buffer, %d in headroom, %d too long, %d on the link",
		p.QueueDrops, p.BufferDrops, p.HeadroomDrops, p.TooLong, p.Port.Lost)
	add("Pauses", "%d sent, %d received, %d ignored", p.PausesSent, p.PausesReceived, p.Ignored)
	add("Paused for", "%v, the other end for %v", p.PausedTime.Round(time.Microsecond), p.PausingTime.Round(time.Microsecond))
	if p.FlowControl != "" {
		add("Flow control", "%s", p.FlowControl)
	}
	for _, line := range p.Settings {
		name, text, ok := strings.Cut(line, ": ")
		if !ok || name == "" {
			continue
		}
		add(strings.ToUpper(name[:1])+name[1:], "%s", text)
	}
	if p.Neighbour != "" {
		add("Neighbour", "%s", p.Neighbour)
	}
	if p.DCBX != "" {
		add("DCBX", "%s", p.DCBX)
	}
	if p.PVID > 0 || p.Trunk != "" {
		add("VLANs", "%d without a tag, %s with one", p.PVID, orNone(p.Trunk))
	}
	return append(all, p.faults()...)
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

// faults lists what was done to the port by command.
func (p fabricPort) faults() (all []fact) {
	if p.Loss > 0 {
		all = append(all, fact{"Loses", fmt.Sprintf("%.3g %%", 100*p.Loss)})
	}
	if len(p.Storming) > 0 {
		all = append(all, fact{"Pause storm", fmt.Sprintf("priorities %v", p.Storming)})
	}
	if p.Take > 0 {
		all = append(all, fact{"Takes", bitsText(float64(p.Take))})
	}
	return all
}
