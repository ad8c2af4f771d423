package eswitch

// Reason is why a frame goes nowhere; 0: it goes somewhere.
type Reason uint8

// The reasons.
const (
	// Malformed: it has no whole header, or is from a group.
	Malformed Reason = iota + 1
	// NoPort: there is no such port, or its link is down.
	NoPort
	// SourceMAC: a virtual function sent it from an address that is not its own.
	SourceMAC
	// EtherType: a virtual function sent it, which may not send this type.
	EtherType
	// Control: it is MAC control, which ends at a link (IEEE 802.3, 31.3).
	Control
	// WrongVLAN: the port is not in its VLAN, or has a tag that it does not know of.
	WrongVLAN
	// ToItself: it is for the port that sent it.
	ToItself
	// Unheard: DHCP that the physical function would get if it were promiscuous.
	Unheard
	// Nobody: no port wants it.
	Nobody
	// Blocked: the port that sent it is blocked, or all that want it are.
	Blocked
	reasons
)

// String names the reason.
func (r Reason) String() string {
	return [...]string{"forwarded", "malformed", "no such port, or its link is down", "source address not allowed", "EtherType not allowed",
		"MAC control", "VLAN not allowed", "to itself", "DHCP that the PF does not hear", "for nobody", "port blocked by its filter"}[r]
}

// Traffic counts frames; those larger than a wire's count once.
type Traffic struct{ Frames, Bytes uint64 }

// Counters are those of a port.
type Counters struct {
	// In is what the port sent, Out what it got, a frame for each that it was given.
	In, Out Traffic
	// Dropped is what the port sent and nobody got, by the reason.
	Dropped [reasons]uint64
	// Redirected are frames of DHCP that the port sent, and that went to the physical function in place of their destination.
	Redirected uint64
	// Held are frames for the port that it did not get because it is blocked.
	Held uint64
}

func (t *Traffic) count(n int) {
	t.Frames++
	t.Bytes += uint64(n)
}

// Counters returns those of a port, which keep counting; nil: there is no such port.
func (s *Switch) Counters(p Port) *Counters {
	if int(p) >= mostPorts || s.ports[p] == nil {
		return nil
	}
	return &s.ports[p].counters
}
