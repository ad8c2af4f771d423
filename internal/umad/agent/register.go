package agent

import (
	"fmt"

	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// Registration says what an agent is for.
type Registration struct {
	QPN      ib.QPN // 0: subnet management, 1: everything else
	Class    uint8  // 0: the agent sends only
	Version  uint8  // of the class
	RMPP     uint8  // version of RMPP that the port performs for the agent; 0: none
	UserRMPP bool   // the agent performs RMPP itself
	Raw      bool   // the agent matches responses itself: it gets all that bear its number
	OUI      uint32 // of a vendor class of the second range
	Methods  [2]uint64
}

// RegistrationError says what is invalid in a registration. Test for it with errors.As.
type RegistrationError struct {
	Field   string
	Value   uint64
	Allowed string
}

// Error implements error.
func (e *RegistrationError) Error() string {
	return fmt.Sprintf("agent: %s is %#x; allowed: %s", e.Field, e.Value, e.Allowed)
}

const directedClass = 0x81

func (r *Registration) check() error {
	wrong := func(field string, value uint64, allowed string) error {
		return &RegistrationError{field, value, allowed}
	}
	if r.QPN > 1 {
		return wrong("queue pair", uint64(r.QPN), "0, 1")
	}
	if r.RMPP > 1 {
		return wrong("RMPP version", uint64(r.RMPP), "0, 1")
	}
	if r.Class == 0 {
		return nil
	}
	subnet := r.Class == mad.ClassSubnetLID || r.Class == directedClass
	switch {
	case r.Class >= 80 && r.Class != directedClass:
		return wrong("management class", uint64(r.Class), "0x01 to 0x4f, 0x81")
	case r.Version >= 0x83:
		return wrong("class version", uint64(r.Version), "0 to 0x82")
	case subnet != (r.QPN == 0):
		return wrong("management class", uint64(r.Class), "0x01 and 0x81 on queue pair 0, others on 1")
	case r.RMPP != 0 && !segmentable(r.Class):
		return wrong("RMPP version", uint64(r.RMPP), "0 for this management class")
	case vendorOUI(r.Class) && r.OUI == 0 || r.OUI > 0xffffff:
		return wrong("OUI", uint64(r.OUI), "0x000001 to 0xffffff for management classes 0x30 to 0x4f")
	}
	return nil
}

// File is a port as opened by a program.
type File struct {
	port    *Port
	deliver func(*Message)
	agents  [MaxAgents]*agent
	sends   int
}

// agent is an agent that a program has registered.
type agent struct {
	file     *File
	port     *Port
	id       uint32 // in its file
	high     uint32 // upper half of its transaction IDs
	qpn      ib.QPN
	rmpp     bool // the port performs RMPP
	raw      bool
	keys     []methodKey
	sends    map[sendKey]*send
	receives map[receiveKey]*receive
}

// Register creates an agent and returns its number in the file. The error is a *RegistrationError.
func (f *File) Register(r Registration) (uint32, error) {
	if err := r.check(); err != nil {
		return 0, err
	}
	id := -1
	for i, a := range f.agents {
		if a == nil {
			id = i
			break
		}
	}
	if id < 0 {
		return 0, &RegistrationError{"number of agents", MaxAgents + 1, "up to 32"}
	}
	p := f.port
	a := &agent{file: f, port: p, id: uint32(id), qpn: r.QPN, rmpp: r.RMPP != 0 && !r.UserRMPP, raw: r.Raw,
		sends: map[sendKey]*send{}, receives: map[receiveKey]*receive{}}
	if r.Class != 0 {
		for method := range uint8(128) {
			if r.Methods[method/64]>>(method%64)&1 == 0 {
				continue
			}
			key := methodKey{version: r.Version, class: r.Class, method: method}
			if vendorOUI(r.Class) {
				key.oui = r.OUI
			}
			if p.methods[key] != nil {
				return 0, &RegistrationError{"method", uint64(method), "those that no other agent of the port has"}
			}
			a.keys = append(a.keys, key)
		}
	}
	for _, k := range a.keys {
		p.methods[k] = a
	}
	for p.ids.last++; p.ids.last == 0; p.ids.last++ {
	}
	a.high = p.ids.last
	p.byHigh[a.high] = a
	f.agents[id] = a
	return uint32(id), nil
}

// Unregister ends an agent; false: the file has none with that number.
func (f *File) Unregister(id uint32) bool {
	if id >= MaxAgents || f.agents[id] == nil {
		return false
	}
	a := f.agents[id]
	f.agents[id] = nil
	for _, k := range a.keys {
		delete(a.port.methods, k)
	}
	delete(a.port.byHigh, a.high)
	for _, s := range a.sends {
		a.end(s)
	}
	for _, r := range a.receives {
		a.forget(r)
	}
	return true
}

// Close ends all agents of the file.
func (f *File) Close() {
	for i := range f.agents {
		f.Unregister(uint32(i))
	}
}
