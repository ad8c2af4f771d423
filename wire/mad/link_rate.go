package mad

// Width is a link width as in PortInfo, one bit (IBA 14.2.5.6).
type Width = uint8

// The link widths.
const (
	Width1x  Width = 1
	Width4x  Width = 2
	Width8x  Width = 4
	Width12x Width = 8
	Width2x  Width = 16
)

// Lanes returns the number of lanes of a width, 0 if it is not exactly one width.
func Lanes(w Width) int {
	switch w {
	case Width1x:
		return 1
	case Width2x:
		return 2
	case Width4x:
		return 4
	case Width8x:
		return 8
	case Width12x:
		return 12
	}
	return 0
}

// Widest returns the width with the most lanes in a mask such as PortInfo's LinkWidthSupported, or 0 if
// there is none.
func Widest(mask uint8) Width {
	best := Width(0)
	for w := Width1x; w <= Width2x; w <<= 1 {
		if mask&w != 0 && Lanes(w) > Lanes(best) {
			best = w
		}
	}
	return best
}

// WidthOf returns the width with that many lanes, or 0 if there is none.
func WidthOf(lanes int) Width {
	for w := Width1x; w <= Width2x; w <<= 1 {
		if Lanes(w) == lanes {
			return w
		}
	}
	return 0
}

// Speed is the signalling rate of a lane, in ascending order. PortInfo spreads it over three fields; FDR10
// is in the vendor's ExtendedPortInfo.
type Speed uint8

// The speeds.
const (
	SpeedNone  Speed = iota
	SpeedSDR         // 2.5 Gb/s: LinkSpeed 1
	SpeedDDR         // 5 Gb/s: LinkSpeed 2
	SpeedQDR         // 10 Gb/s: LinkSpeed 4
	SpeedFDR10       // 10.3125 Gb/s: ExtendedPortInfo's LinkSpeed 1
	SpeedFDR         // 14.0625 Gb/s: LinkSpeedExt 1
	SpeedEDR         // 25.78125 Gb/s: LinkSpeedExt 2
	SpeedHDR         // 53.125 Gb/s: LinkSpeedExt 4
	SpeedNDR         // 106.25 Gb/s: LinkSpeedExt 8
	SpeedXDR         // 212.5 Gb/s: LinkSpeedExt2 1
)

var speeds = [...]struct {
	name string
	mbps float64
}{{"none", 0}, {"SDR", 2500}, {"DDR", 5000}, {"QDR", 10000}, {"FDR10", 10312.5}, {"FDR", 14062.5}, {"EDR", 25781.25}, {"HDR", 53125},
	{"NDR", 106250}, {"XDR", 212500}}

// String returns the usual name, such as QDR.
func (s Speed) String() string {
	if int(s) < len(speeds) {
		return speeds[s].name
	}
	return nameOf(uint8(s), "speed", nil)
}

// LaneMbps returns the signalling rate of one lane in Mb/s.
func (s Speed) LaneMbps() float64 {
	if int(s) < len(speeds) {
		return speeds[s].mbps
	}
	return 0
}

// ParseSpeed returns the speed that String calls name, and whether there is one.
func ParseSpeed(name string) (Speed, bool) {
	for s := SpeedSDR; s <= SpeedXDR; s++ {
		if speeds[s].name == name {
			return s, true
		}
	}
	return SpeedNone, false
}

// ActiveSpeed returns the speed that the three active fields give; the extended ones take precedence over
// LinkSpeedActive.
func (i *PortInfo) ActiveSpeed() Speed {
	switch {
	case i.LinkSpeedExt2Active&1 != 0:
		return SpeedXDR
	case i.LinkSpeedExtActive != 0:
		return highest(i.LinkSpeedExtActive, SpeedFDR)
	}
	return highest(i.LinkSpeedActive, SpeedSDR)
}

// highest returns the speed of the highest bit set, where first is the speed of bit 0.
func highest(bits uint8, first Speed) Speed {
	s := SpeedNone
	for ; bits != 0; bits >>= 1 {
		s = max(s, first-1) + 1
	}
	return s
}
