package subnet

// Limits are the times, stall counts, lanes and thresholds that all ports are set to, as codes of PortInfo
// (IBA 14.2.5.6).
type Limits struct {
	PacketLife     uint8 // of SwitchInfo and of paths: 4.096 us times 2 to the power of it; 20 and more: no limit
	HOQLife        uint8 // the same, for the head of a queue towards a switch
	LeafHOQLife    uint8 // towards an adapter or router
	StallCount     uint8 // consecutive drops that stall a lane towards a switch, 1 to 7
	LeafStallCount uint8
	MaxVLs         uint8 // code of OperationalVLs, 1 to 5: 1, 2, 4, 8 or 15 lanes
	SubnetTimeout  uint8 // 4.096 us times 2 to the power of it
	LocalPhyErrors uint8 // threshold of trap 129, 0 to 15; 0: never
	OverrunErrors  uint8 // of trap 130
}

// DefaultLimits are those of OpenSM.
func DefaultLimits() Limits {
	return Limits{PacketLife: 18, HOQLife: 18, LeafHOQLife: 16, StallCount: 7, LeafStallCount: 7, MaxVLs: 5, SubnetTimeout: 18,
		LocalPhyErrors: 8, OverrunErrors: 8}
}

// check refuses invalid fields. The error is a *ConfigError.
func (l *Limits) check() error {
	for _, f := range []struct {
		name    string
		v       uint8
		low, up int
	}{
		{"packet life time", l.PacketLife, 0, 31}, {"head of queue life time", l.HOQLife, 0, 31},
		{"head of queue life time of leaves", l.LeafHOQLife, 0, 31},
		{"VL stall count", l.StallCount, 1, 7}, {"VL stall count of leaves", l.LeafStallCount, 1, 7},
		{"code of operational VLs", l.MaxVLs, 1, 5},
		{"subnet timeout", l.SubnetTimeout, 0, 31}, {"local phy errors threshold", l.LocalPhyErrors, 0, 15},
		{"overrun errors threshold", l.OverrunErrors, 0, 15},
	} {
		if err := within(f.name, int(f.v), f.low, f.up); err != nil {
			return err
		}
	}
	return nil
}
