package fabric

import (
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/wire/mad"
)

// A sampling counts something at a port for a period (IBA 16.1.3.2 to 16.1.3.4). Every node can do one at
// a time, of up to 15 counters of 32 bits.

// sampleTick is the unit of SampleStart and SampleInterval: 250 times the 4 ns of a symbol at 2.5 Gb/s.
const (
	sampleTick  = time.Microsecond
	tickCode    = 249
	sampleWidth = 4 // of counters: 32 bits
)

// Values of SampleStatus.
const (
	sampleDone    = 0
	sampleDelayed = 1 // until the time in SampleStart has passed
	sampleRunning = 2
)

// Values of CounterSelect (IBA 16.1.3.3).
const (
	selectXmitData = 1 + iota
	selectRcvData
	selectXmitPkts
	selectRcvPkts
	selectXmitWait
)

const sampledCounters = 15

// sampler is the sampling of a node: the last one, or the one in progress.
type sampler struct {
	number   uint32 // distinguishes it from the previous one, whose events are to be ignored
	port     int32
	status   uint8
	tag      uint16
	start    uint32
	interval uint32
	selects  [sampledCounters]uint16
	base     [sampledCounters]uint64
	result   [sampledCounters]uint64
}

// samplesControl answers PortSamplesControl. While a sampling is in progress a Set changes nothing.
func (f *Fabric) samplesControl(now clock.Time, n *node, own *port, set bool, data []byte) uint16 {
	index := own.node
	s := f.samplers[index]
	ports := f.selected(n, own, data[1])
	if len(ports) != 1 && data[1] != 0 || data[1] == mad.PMAAllPorts {
		return mad.StatusInvalidField
	}
	a := mad.PortSamplesControl
	if set && (s == nil || s.status == sampleDone) {
		if len(ports) != 1 {
			return mad.StatusInvalidField
		}
		next := &sampler{port: f.index(&ports[0]), status: sampleDelayed, tag: uint16(a.Get(data, "Tag")),
			start:    uint32(a.Get(data, "SampleStart")),
			interval: uint32(a.Get(data, "SampleInterval"))}
		for i := range next.selects {
			next.selects[i] = uint16(a.Get(data, selectName(i)))
			if next.selects[i] > selectXmitWait {
				return mad.StatusInvalidField
			}
		}
		if s != nil {
			next.number = s.number + 1
		}
		if s = next; f.samplers == nil {
			f.samplers = map[int32]*sampler{}
		}
		f.samplers[index] = s
		f.sampleAt(now, s, s.start)
	}
	keep := [2]byte(data)
	clear(data)
	copy(data, keep[:])
	a.Put(data, "Tick", tickCode)
	a.Put(data, "CounterWidth", sampleWidth)
	a.Put(data, "CounterMask0", 1) // each can count what is mandatory
	a.Put(data, "CounterMasks1to9", 0o111111111)
	a.Put(data, "CounterMasks10to14", 0o11111)
	if s != nil {
		a.Put(data, "PortSelect", uint64(f.ports[s.port].number))
		a.Put(data, "SampleStatus", uint64(s.status))
		a.Put(data, "SampleStart", uint64(s.start))
		a.Put(data, "SampleInterval", uint64(s.interval))
		a.Put(data, "Tag", uint64(s.tag))
		for i, c := range s.selects {
			a.Put(data, selectName(i), uint64(c))
		}
	}
	return mad.StatusOK
}

// selectName returns the name of the field that says what counter i counts.
func selectName(i int) string { return selectNames[i] }

var selectNames = [sampledCounters]string{"CounterSelect0", "CounterSelect1", "CounterSelect2", "CounterSelect3", "CounterSelect4",
	"CounterSelect5", "CounterSelect6",
	"CounterSelect7", "CounterSelect8", "CounterSelect9", "CounterSelect10", "CounterSelect11", "CounterSelect12", "CounterSelect13",
	"CounterSelect14"}

func (f *Fabric) sampleAt(now clock.Time, s *sampler, ticks uint32) {
	f.later(event{at: now.Add(time.Duration(ticks) * sampleTick), kind: sample, port: s.port, epoch: s.number})
}

// sample advances the sampling of a node when one of its times is over.
func (f *Fabric) sample(now clock.Time, node int32, number uint32) {
	s := f.samplers[node]
	if s == nil || s.number != number {
		return
	}
	p := &f.ports[s.port]
	switch s.status {
	case sampleDelayed:
		s.status = sampleRunning
		for i, c := range s.selects {
			s.base[i] = p.sampled(c)
		}
		f.sampleAt(now, s, s.interval)
	case sampleRunning:
		s.status = sampleDone
		for i, c := range s.selects {
			v := p.sampled(c)
			if v < s.base[i] { // it was reset meanwhile
				s.base[i] = 0
			}
			s.result[i] = v - s.base[i]
		}
	}
}

// sampled returns the current value of what CounterSelect selects.
func (p *port) sampled(c uint16) uint64 {
	switch c {
	case selectXmitData:
		return p.traffic.xmitData
	case selectRcvData:
		return p.traffic.rcvData
	case selectXmitPkts:
		return p.traffic.xmitPkts
	case selectRcvPkts:
		return p.traffic.rcvPkts
	case selectXmitWait:
		return p.all().wide[ctrXmitWait]
	}
	return 0
}

// samplesResult answers PortSamplesResult: the counts are available when the sampling is over.
func (f *Fabric) samplesResult(n *node, data []byte) uint16 {
	clear(data)
	s := f.samplers[f.ports[n.first].node]
	if s == nil {
		return mad.StatusOK
	}
	a := mad.PortSamplesResult
	a.Put(data, "Tag", uint64(s.tag))
	a.Put(data, "SampleStatus", uint64(s.status))
	if s.status == sampleDone {
		for i, v := range s.result {
			a.Put(data, resultNames[i], v)
		}
	}
	return mad.StatusOK
}

var resultNames = [sampledCounters]string{"Counter0", "Counter1", "Counter2", "Counter3", "Counter4", "Counter5", "Counter6", "Counter7",
	"Counter8", "Counter9",
	"Counter10", "Counter11", "Counter12", "Counter13", "Counter14"}
