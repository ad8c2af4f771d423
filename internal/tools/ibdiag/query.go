package ibdiag

import (
	"errors"

	"github.com/softvpi/softvpi/internal/umad"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// Get requests an attribute of subnet management. It warns of a node that does not answer; the error is
// umad.ErrTimeout, an *umad.StatusError, or one of the port.
func (s *Session) Get(r Route, attribute uint16, modifier uint32) (*mad.SMP, error) {
	return s.smp(r, mad.MethodGet, attribute, modifier, nil)
}

// Set sets an attribute of subnet management and returns its resulting value. The errors are those of Get.
func (s *Session) Set(r Route, attribute uint16, modifier uint32, data []byte) (*mad.SMP, error) {
	return s.smp(r, mad.MethodSet, attribute, modifier, data)
}

func (s *Session) smp(r Route, method uint8, attribute uint16, modifier uint32, data []byte) (*mad.SMP, error) {
	m := mad.NewSMP(method, attribute, modifier, 0)
	m.MKey = s.MKey
	copy(m.Data[:], data)
	to, err := r.Direct(&m)
	if err != nil {
		return nil, err
	}
	d, err := s.call(r, to, (*[mad.Len]byte)(m.Append(nil)))
	if err != nil {
		return nil, err
	}
	a, err := mad.ParseSMP(d.MAD[:])
	if err != nil {
		return nil, err
	}
	if a.StatusCode() != mad.StatusOK {
		return &a, s.status(a.StatusCode(), r)
	}
	return &a, nil
}

// Direct gives a packet the route, and returns where to send it. The error is a *mad.Error.
func (r Route) Direct(m *mad.SMP) (umad.Address, error) {
	if !r.directed() {
		return umad.Address{LID: r.LID, QP: umad.SMIQP}, nil
	}
	var ports []uint8
	if len(r.Path) > 1 {
		ports = r.Path[1:]
	}
	if err := m.Direct(ports); err != nil {
		return umad.Address{}, err
	}
	if r.LID == 0 {
		return umad.Address{LID: ib.LIDPermissive, QP: umad.SMIQP}, nil
	}
	m.DrSLID, m.DrDLID = r.SLID, r.DLID
	return umad.Address{LID: r.LID, QP: umad.SMIQP}, nil
}

// call sends a request, with retries, and warns if there is no answer.
func (s *Session) call(r Route, to umad.Address, request *[mad.Len]byte) (*umad.Datagram, error) {
	const where = "_do_madrpc"
	milliseconds := s.Timing.Timeout.Milliseconds()
	var d *umad.Datagram
	var err error
	for try := range s.Timing.Tries {
		if try > 0 && s.Errors {
			s.Warnf(where, "retry %d (timeout %d ms)", try, milliseconds)
		}
		d, err = s.Port.Call(s.Context, to, request, umad.Timing{Timeout: s.Timing.Timeout, Tries: 1})
		if !errors.Is(err, umad.ErrTimeout) {
			return d, err
		}
	}
	if s.Errors {
		s.Warnf(where, "timeout after %d retries, %d ms", s.Timing.Tries, int64(s.Timing.Tries)*milliseconds)
	}
	s.Warnf("mad_rpc", "_do_madrpc failed; dport (%s)", r)
	return d, err
}

// status returns the error for an answer's status, with a warning if requested.
func (s *Session) status(status uint16, r Route) error {
	if s.Errors {
		s.Warnf("mad_rpc", "MAD completed with error status 0x%x; dport (%s)", status, r)
	}
	return &umad.StatusError{Status: status}
}

// NodeInfo requests the attribute. The errors are those of Get, and *mad.Error.
func (s *Session) NodeInfo(r Route) (mad.NodeInfo, error) {
	a, err := s.Get(r, mad.AttrNodeInfo, 0)
	if err != nil {
		return mad.NodeInfo{}, err
	}
	return mad.ParseNodeInfo(a.Data[:])
}

// PortInfo requests the attribute. The errors are those of Get, and *mad.Error.
func (s *Session) PortInfo(r Route, port uint32) (mad.PortInfo, error) {
	a, err := s.Get(r, mad.AttrPortInfo, port)
	if err != nil {
		return mad.PortInfo{}, err
	}
	return mad.ParsePortInfo(a.Data[:])
}

// SwitchInfo requests the attribute. The errors are those of Get, and *mad.Error.
func (s *Session) SwitchInfo(r Route) (mad.SwitchInfo, error) {
	a, err := s.Get(r, mad.AttrSwitchInfo, 0)
	if err != nil {
		return mad.SwitchInfo{}, err
	}
	return mad.ParseSwitchInfo(a.Data[:])
}

// NodeDescription requests the attribute. The errors are those of Get.
func (s *Session) NodeDescription(r Route) (mad.NodeDescription, error) {
	a, err := s.Get(r, mad.AttrNodeDescription, 0)
	if err != nil {
		return mad.NodeDescription{}, err
	}
	return mad.NodeDescription(a.Data), nil
}

// Perf gets an attribute of performance management, or sets it to data. It returns the complete attribute.
// The errors are those of Get, and *failure for a directed route, which only subnet management supports.
func (s *Session) Perf(r Route, method uint8, attribute uint16, data []byte) ([]byte, error) {
	if r.directed() {
		return nil, Failf("performance management needs a LID, but the address is a directed route (%s)", r)
	}
	q := mad.PMARequest{Header: mad.Header{Method: method, AttributeID: attribute}, Data: data}
	d, err := s.call(r, r.Services(), (*[mad.Len]byte)(q.Append(nil)))
	if err != nil {
		return nil, err
	}
	a, err := mad.ParsePMA(d.MAD[:])
	if err != nil {
		return nil, err
	}
	if a.Status != mad.StatusOK {
		return nil, s.status(a.Status, r)
	}
	return a.Data, nil
}

// ClearCounters resets the counters of a port whose bits are in the mask; 0 means all. The errors are
// those of Perf.
func (s *Session) ClearCounters(r Route, a *mad.PMAttribute, port uint8, mask uint64) error {
	if mask == 0 {
		mask = 1<<64 - 1
	}
	data := make([]byte, mad.PMADataLen)
	a.Put(data, "PortSelect", uint64(port))
	if f, ok := a.Field("CounterSelect"); ok {
		f.Put(data, mask&f.Max())
		if f, ok = a.Field("CounterSelect2"); ok {
			f.Put(data, mask>>16&f.Max())
		}
	}
	_, err := s.Perf(r, mad.MethodSet, a.ID, data)
	return err
}
