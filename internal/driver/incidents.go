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
)

// incidentsEvery is how often the fabric is asked for incidents.
const incidentsEvery = time.Second

// incidents asks the Ethernet fabric at whose hosts adapters are plugged in what goes wrong there, and raises events.
type incidents struct {
	stop, done chan struct{} // nil: there is no such fabric on this machine
}

func (x *incidents) close() {
	if x.stop != nil {
		close(x.stop)
		<-x.done
	}
}

// watchFabric begins to ask, if adapters are plugged in at a fabric of this machine. Over UDP only frames come.
func (d *Driver) watchFabric() {
	plugged := slices.ContainsFunc(d.cfg.Adapters, func(a config.Adapter) bool { return a.Link == config.LinkFabric })
	if !plugged || d.cfg.Fabric == nil || validFabric(d.cfg.Fabric.Connect) != nil || strings.Contains(d.cfg.Fabric.Connect, "://") {
		return
	}
	x := &d.incidents
	x.stop, x.done = make(chan struct{}), make(chan struct{})
	go func() {
		defer close(x.done)
		tick := time.NewTicker(incidentsEvery)
		defer tick.Stop()
		var seen heard
		for {
			d.tellIncidents(d.cfg.Fabric.Connect, &seen)
			select {
			case <-x.stop:
				return
			case <-tick.C:
			}
		}
	}()
}

// tellIncidents raises an event for each incident that is new.
func (d *Driver) tellIncidents(fabric string, seen *heard) {
	text, err := d.CommandFabric(fabric, []string{"state", live.Incidents})
	var part state.Part
	if err != nil || json.Unmarshal([]byte(text), &part) != nil {
		return // it does not run now
	}
	for _, x := range seen.fresh(&part) {
		if x.Over {
			d.events.Raise(0, events.FabricIncidentOver{Fabric: fabric, Incident: x.String()})
		} else {
			d.events.Raise(0, events.FabricIncident{Fabric: fabric, Incident: x.String()})
		}
	}
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
