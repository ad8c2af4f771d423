package perfquery

import (
	"fmt"

	"github.com/softvpi/softvpi/internal/tools/ibdiag"
	"github.com/softvpi/softvpi/wire/mad"
)

// counters returns the attribute that the options select.
func (r *run) counters() *mad.PMAttribute {
	if r.extended {
		return mad.PortCountersExtended
	}
	return mad.PortCounters
}

// fields returns those that the node has.
func (r *run) fields() []mad.PMAField {
	a := r.counters()
	if !r.extended {
		return a.Fields
	}
	const plain, withCasts = 6, 10 // number of fields without, and with, unicast and multicast
	fields := append([]mad.PMAField{}, a.Fields[:plain]...)
	if r.caps.CapabilityMask&mad.CapPMExtendedWidth != 0 {
		fields = append(fields, a.Fields[plain:withCasts]...)
	}
	if r.caps.CapabilityMask2&mad.Cap2PMAdditionalExtended != 0 {
		fields = append(fields, a.Fields[withCasts:]...)
	}
	return fields
}

// show shows ports, one after the other or summed up.
func (r *run) show(ports []uint8, together bool) error {
	sum := make([]byte, mad.PMADataLen)
	for _, p := range ports {
		data, err := r.read(p)
		if err != nil {
			return err
		}
		if together {
			r.add(sum, data)
		} else {
			r.print(p, data)
		}
	}
	if together {
		r.counters().Put(sum, "PortSelect", mad.PMAAllPorts)
		r.print(mad.PMAAllPorts, sum)
	}
	return nil
}

// read reads the counters of a port.
func (r *run) read(port uint8) ([]byte, error) {
	what := "perfquery"
	if r.extended {
		what = "perfextquery"
		if r.caps.CapabilityMask&(mad.CapPMExtendedWidth|mad.CapPMExtendedWidthNoIETF) == 0 {
			r.Warnf("dump_perfcounters", "PerfMgt ClassPortInfo CapMask 0x%02X; No extended counter support indicated\n",
				r.caps.CapabilityMask)
		}
	}
	data, err := r.query(r.counters().ID, port)
	if err != nil {
		return nil, r.lost(err, what)
	}
	if !r.extended && r.caps.CapabilityMask&mad.CapPMXmitWait == 0 {
		mad.PortCounters.Put(data, "PortXmitWait", 0)
	}
	return data, nil
}

// add adds counters. Those at their maximum stay there (IBA 16.1.3.5); the selectors are those of the last
// port.
func (r *run) add(sum, data []byte) {
	for _, f := range r.counters().Fields {
		v := f.Get(data)
		if f.Mask || f.Name == "PortSelect" {
			f.Put(sum, v)
			continue
		}
		was := f.Get(sum)
		if v > f.Max()-was {
			v = f.Max() - was
		}
		f.Put(sum, was+v)
	}
}

func (r *run) print(port uint8, data []byte) {
	title := fmt.Sprintf("# Port counters: %s port %d (CapMask: 0x%02X)", r.to, port, r.caps.CapabilityMask)
	if r.extended {
		title = fmt.Sprintf("# Port extended counters: %s port %d (CapMask: 0x%02X CapMask2: 0x%07X)", r.to, port, r.caps.CapabilityMask,
			r.caps.CapabilityMask2)
	}
	r.Printf("%s\n%s", title, ibdiag.PMALines(data, r.fields()))
}

// Bits of counters above the first sixteen, in the masks of a reset.
const (
	maskXmitWait         = 1 << 16
	maskQP1Dropped       = 1 << 17
	maskExtendedErrors   = 0xfff0000
	maskExtendedXmitWait = 1 << 28
	maskExtendedQP1      = 1 << 29
)

// resetMask returns the counters to reset, without a mask all that the node has.
func (r *run) resetMask() uint64 {
	mask, caps := r.mask, r.caps.CapabilityMask
	add := func(capability uint16, bit uint64) {
		if caps&capability != 0 {
			mask |= bit
		}
	}
	switch {
	case r.extended:
		mask |= maskExtendedErrors
		add(mad.CapPMXmitWait, maskExtendedXmitWait)
		add(mad.CapPMQP1Dropped, maskExtendedQP1)
	case !r.maskGiven:
		add(mad.CapPMXmitWait, maskXmitWait)
		add(mad.CapPMQP1Dropped, maskQP1Dropped)
	}
	return mask
}

func (r *run) resetName() string {
	if r.extended {
		return "perf ext reset"
	}
	return "perf reset"
}
