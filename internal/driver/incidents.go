package driver

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/events"
	"github.com/softvpi/softvpi/internal/fabric/live"
	"github.com/softvpi/softvpi/internal/fabric/state"
	"github.com/softvpi/softvpi/internal/link/cable"
)

const (
	// incidentsEvery is how often a fabric of this machine is asked for incidents.
	incidentsEvery = time.Second
	// mostTold is how many incidents wait at most of which a fabric tells over UDP; it keeps fewer itself.
	mostTold = 256
)

// incidents are what goes wrong in the Ethernet fabric at whose hosts adapters are plugged in: it is asked for, or tells over UDP. Events
// are raised of them.
type incidents struct {
	stop, done chan struct{} // nil: there is no such fabric
	news       chan cable.Incident
}

func newIncidents() incidents { return incidents{news: make(chan cable.Incident, mostTold)} }

// told takes what a fabric tells over UDP. It does not block.
func (x *incidents) told(i cable.Incident) {
	select {
	case x.news <- i:
	default:
	}
}

func (x *incidents) close() {
	if x.stop != nil {
		close(x.stop)
		<-x.done
	}
}

// watchFabric begins to ask, or to listen, if adapters are plugged in at a fabric.
func (d *Driver) watchFabric() {
	plugged := slices.ContainsFunc(d.cfg.Adapters, func(a config.Adapter) bool { return a.Link == config.LinkFabric })
	if !plugged || d.cfg.Fabric == nil {
		return
	}
	watch := d.hearIncidents
	if !strings.HasPrefix(d.cfg.Fabric.Connect, cable.Scheme) {
		if validFabric(d.cfg.Fabric.Connect) != nil { // the path of a socket, at which nobody takes commands
			return
		}
		watch = d.askForIncidents
	}
	x := &d.incidents
	x.stop, x.done = make(chan struct{}), make(chan struct{})
	go func() {
		defer close(x.done)
		watch(d.cfg.Fabric.Connect)
	}()
}

// askForIncidents asks a fabric of this machine until the driver ends.
func (d *Driver) askForIncidents(fabric string) {
	tick := time.NewTicker(incidentsEvery)
	defer tick.Stop()
	var seen heard
	for {
		text, err := d.CommandFabric(fabric, []string{"state", live.Incidents})
		var part state.Part
		if err == nil && json.Unmarshal([]byte(text), &part) == nil { // otherwise it does not run now
			for _, x := range seen.fresh(&part) {
				d.raiseIncident(fabric, x)
			}
		}
		select {
		case <-d.incidents.stop:
			return
		case <-tick.C:
		}
	}
}

// hearIncidents listens to what a fabric tells over UDP until the driver ends.
func (d *Driver) hearIncidents(fabric string) {
	var seen told
	for {
		select {
		case <-d.incidents.stop:
			return
		case x := <-d.incidents.news:
			if seen.first(x) {
				d.raiseIncident(fabric, state.Incident{Kind: x.Kind, Over: x.Over, Text: x.Text})
			}
		}
	}
}

// raiseIncident raises the event of an incident.
func (d *Driver) raiseIncident(fabric string, x state.Incident) {
	if x.Over {
		d.events.Raise(0, events.FabricIncidentOver{Fabric: fabric, Incident: x.String()})
		return
	}
	d.events.Raise(0, events.FabricIncident{Fabric: fabric, Incident: x.String()})
}

// heard is what a fabric has told of.
type heard struct {
	now  int64  // of its clock
	last uint64 // number of the last incident
}

// fresh returns the incidents that it had not told of before. One whose clock is behind has begun anew.
func (h *heard) fresh(p *state.Part) (all []state.Incident) {
	if p.Now < h.now {
		h.last = 0
	}
	h.now = p.Now
	for _, x := range p.Incidents {
		if x.Number > h.last {
			h.last = x.Number
			all = append(all, x)
		}
	}
	return all
}

// told is what a fabric has told of over UDP.
type told struct {
	fabric [16]byte
	last   uint64 // number of the last incident
}

// first reports whether an incident is told of for the first time: each session of an adapter tells of all. A fabric that has begun anew
// has another name.
func (t *told) first(x cable.Incident) bool {
	if x.Fabric == t.fabric && x.Number <= t.last {
		return false
	}
	t.fabric, t.last = x.Fabric, x.Number
	return true
}
