package ethernet

// SetMember says whether a port of a bundle takes frames (collects), and whether frames are sent there (distributes), as the control of
// link aggregation has it (IEEE 802.1AX, 6.2). Both hold at first. What waits there leaves; LLDP, slow protocols and pauses come and go
// whatever it says.
func (p *Port) SetMember(collects, distributes bool) { p.deaf, p.mute = !collects, !distributes }

// Member returns what SetMember has set.
func (p *Port) Member() (collects, distributes bool) { return !p.deaf, !p.mute }
