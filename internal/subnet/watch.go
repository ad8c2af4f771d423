package subnet

import (
	"slices"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/subnet/topology"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// A port says by trap 144 that its virtual ports have changed, and sends no trap again within its SubnetTimeOut (IBA 14.2.5.6), about a
// second. Functions are made one after the other, and each would wait that long for its LID. So the manager looks itself at a port that
// may not tell: at VirtualizationInfo alone, often at first and more and more seldom until the port may send the next trap.
const (
	watchFirst = 10 * time.Millisecond
	watchLast  = 80 * time.Millisecond
)

// watch is a port whose virtual ports may change without the port being able to say so.
type watch struct {
	guid  uint64
	next  clock.Time // when it is looked at
	gap   time.Duration
	until clock.Time // then it can tell itself; it is looked at once in any case
}

// watchPort begins to look at a port with virtual ports.
func (s *SM) watchPort(guid uint64) {
	i := slices.IndexFunc(s.watches, func(w watch) bool { return w.guid == guid })
	if i < 0 {
		i = len(s.watches)
		s.watches = append(s.watches, watch{guid: guid})
	}
	w := &s.watches[i]
	w.next, w.gap, w.until = s.now.Add(settle+watchFirst), watchFirst, s.now.Add(4096*time.Nanosecond<<s.cfg.Limits.SubnetTimeout)
}

// watchIssuer begins to look at the port that has sent trap 144, if it has virtual ports.
func (s *SM) watchIssuer(lid ib.LID) {
	if s.cfg.Virtual != VirtualEnable || s.live == nil {
		return
	}
	if p := s.live.EndPortOfLID(lid); p != topology.None {
		if guid := s.live.Ports[s.live.Base(p)].GUID; s.canVirtual[guid] {
			s.watchPort(guid)
		}
	}
}

// later says when a port that is looked at now is looked at next.
func (w *watch) later(now clock.Time) {
	w.next = now.Add(w.gap)
	w.gap = min(2*w.gap, watchLast)
}

// lookedAt takes note of what a port has said: after a change the next may be near.
func (s *SM) lookedAt(guid uint64, changed bool) {
	for i := range s.watches {
		if w := &s.watches[i]; w.guid == guid {
			if changed {
				w.gap = watchFirst
			}
			w.later(s.now)
		}
	}
}

// watchAt returns when a port is looked at next.
func (s *SM) watchAt() clock.Time {
	at := clock.Never
	if s.state == mad.SMMaster && s.live != nil && s.live == s.cur {
		for i := range s.watches {
			at = clock.Min(at, s.watches[i].next)
		}
	}
	return at
}

// watchPorts looks at the ports whose time has come.
func (s *SM) watchPorts() {
	s.stage = stageWatch
	keep := s.watches[:0]
	for _, w := range s.watches {
		if s.now.Before(w.next) {
			keep = append(keep, w)
			continue
		}
		p := s.cur.EndPortOfGUID(w.guid)
		if p == topology.None || s.cur.Ports[p].Index != 0 {
			continue
		}
		s.x.push(work{at: p, attr: mad.AttrVirtualizationInfo})
		if s.now.Before(w.until) {
			w.later(s.now)
			keep = append(keep, w)
		}
	}
	s.watches = keep
}

// onWatch handles the response to watchPorts.
func (s *SM) onWatch(w work, smp *mad.SMP) {
	if i, err := mad.ParseVirtualizationInfo(smp.Data[:]); err == nil && (i.StateChange || !i.Enable) {
		s.heavy = true // the sweep says when the port is looked at next
	}
}

// notWatched handles a request of watchPorts that failed: if the port is gone, other things say so.
func (s *SM) notWatched(w work) {
	guid := s.cur.Ports[w.at].GUID
	s.watches = slices.DeleteFunc(s.watches, func(w watch) bool { return w.guid == guid })
}

// haveWatched goes on after watchPorts: with a sweep, if something has changed.
func (s *SM) haveWatched() {
	s.stage = stageIdle
	if s.heavy {
		s.sweepAt = s.now
	}
}
