package fabric

import (
	"encoding/binary"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/wire/mad"
)

// pma is the performance management agent (IBA 16.1).
func (f *Fabric) pma(now clock.Time, own, in *port, b *[mad.Len]byte) bool {
	method := b[3]
	if method != mad.MethodGet && method != mad.MethodSet {
		return false
	}
	if b[0] != mad.BaseVersion || b[2] != mad.ClassVersionPerf {
		return answer(b, mad.StatusBadVersion)
	}
	data := b[mad.PMADataOffset:]
	id := binary.BigEndian.Uint16(b[16:])
	n := &f.nodes[own.node]
	if id == mad.AttrClassPortInfo {
		if method == mad.MethodSet {
			return answer(b, mad.StatusMethodUnsupported)
		}
		clear(data)
		info := mad.ClassPortInfo{BaseVersion: mad.BaseVersion, ClassVersion: mad.ClassVersionPerf, RespTime: 18,
			CapabilityMask:  mad.CapPMAllPortSelect | mad.CapPMExtendedWidth | mad.CapPMXmitWait | mad.CapPMQP1Dropped,
			CapabilityMask2: mad.Cap2PMAdditionalExtended}
		info.Append(data[:0])
		return answer(b, mad.StatusOK)
	}
	switch id {
	case mad.AttrPortSamplesControl:
		return answer(b, f.samplesControl(now, n, own, method == mad.MethodSet, data))
	case mad.AttrPortSamplesResult:
		if method == mad.MethodSet {
			return answer(b, mad.StatusMethodUnsupported)
		}
		return answer(b, f.samplesResult(n, data))
	}
	fields, ok := shown[id]
	if !ok {
		return answer(b, mad.StatusAttributeUnsupported)
	}
	ports := f.selected(n, own, data[1])
	if len(ports) == 0 {
		return answer(b, mad.StatusInvalidField)
	}
	if method == mad.MethodSet {
		setCounters(ports, id, fields, data)
	}
	attribute := mad.PMAttributeByID(id)
	first, second := attribute.Get(data, "CounterSelect"), attribute.Get(data, "CounterSelect2")
	keep := [2]byte(data) // the response has the selectors of the request
	clear(data)
	copy(data, keep[:])
	attribute.Put(data, "CounterSelect", first)
	attribute.Put(data, "CounterSelect2", second)
	for i := range fields {
		c := &fields[i]
		var sum uint64
		for j := range ports {
			sum += ports[j].read(c, id)
		}
		if c.from != fromNothing {
			c.field.Put(data, sum)
		}
	}
	return answer(b, mad.StatusOK)
}

// selected returns the ports that PortSelect means.
func (f *Fabric) selected(n *node, own *port, number uint8) []port {
	ports := f.ports[n.first : int(n.first)+int(n.count)+1]
	switch {
	case number == mad.PMAAllPorts:
		return ports[1:]
	case number > n.count || number == 0 && n.kind != mad.NodeSwitch:
		return nil
	}
	return ports[number : number+1]
}

// read returns the value that a counter shows.
func (p *port) read(c *counted, id uint16) uint64 {
	switch c.from {
	case fromTraffic:
		v := p.traffic.seen(sight(c.index))
		if p.counters != nil {
			v -= p.counters.base(id)[c.index]
		}
		return v
	case fromFlow:
		if p.flow != nil {
			return c.table(p.flow)[c.index]
		}
	case fromErrors:
		if p.counters != nil {
			return p.counters.errors(id)[c.index]
		}
	}
	return 0
}

// base returns the values from which an attribute's traffic counters count.
func (c *counters) base(id uint16) *[sightCount]uint64 {
	if id == mad.AttrPortCountersExtended {
		return &c.long
	}
	return &c.short
}

// errors returns the other counters as an attribute shows them.
func (c *counters) errors(id uint16) *[counterCount]uint64 {
	if id == mad.AttrPortCountersExtended {
		return &c.wide
	}
	return &c.value
}

// setCounters sets the counters that CounterSelect and CounterSelect2 select to the values in the
// attribute.
func setCounters(ports []port, id uint16, fields []counted, data []byte) {
	a := mad.PMAttributeByID(id)
	first, second := a.Get(data, "CounterSelect"), a.Get(data, "CounterSelect2")
	for i := range fields {
		c := &fields[i]
		mask := first
		if c.second {
			mask = second
		}
		if mask>>c.bit&1 == 0 {
			continue
		}
		v := c.field.Get(data)
		for j := range ports {
			ports[j].write(c, id, v)
		}
	}
}

func (p *port) write(c *counted, id uint16, v uint64) {
	switch c.from {
	case fromTraffic:
		p.all().base(id)[c.index] = p.traffic.seen(sight(c.index)) - v
	case fromFlow:
		c.table(p.flows())[c.index] = v
	case fromErrors:
		p.all().errors(id)[c.index] = v
	}
}

// The OpenFabrics vendor class that ibping uses. The data of its response is the name of the responder.
const (
	classVendorPing = 0x32
	pingOUI         = 37 // behind an RMPP header and a reserved byte
	pingData        = 40
	openFabricsOUI  = 0x001405
)

// vendorPing answers an ibping with the description of the node.
func vendorPing(n *node, b *[mad.Len]byte) bool {
	if b[3] != mad.MethodGet || b[pingOUI] != openFabricsOUI>>16 || binary.BigEndian.Uint16(b[pingOUI+1:]) != openFabricsOUI&0xffff {
		return false
	}
	clear(b[pingData:])
	copy(b[pingData:mad.Len-1], n.description.String())
	return answer(b, mad.StatusOK)
}
