package ibdiag

import (
	"fmt"

	"github.com/softvpi/softvpi/internal/tools/internal/discovery"
	"github.com/softvpi/softvpi/wire/mad"
)

// CouldBeWidth returns a remark if both ports of a link support a greater width, otherwise "". The port
// must have a remote one.
func CouldBeWidth(p *discovery.Port) string {
	common := p.Info.LinkWidthSupported & p.Remote.Info.LinkWidthSupported
	for _, w := range []mad.Width{mad.Width12x, mad.Width8x, mad.Width4x, mad.Width2x, mad.Width1x} {
		if common&w == 0 {
			continue
		}
		if p.Info.LinkWidthActive&w == 0 {
			return "Could be " + widthText(w)
		}
		return ""
	}
	return "Could be " + widthText(0)
}

// CouldBeSpeed returns a remark if both ports of a link support a higher speed, otherwise "". The port
// must have a remote one.
func CouldBeSpeed(p *discovery.Port) string {
	if mine, yours := p.SupportedExtendedSpeeds(), p.Remote.SupportedExtendedSpeeds(); mine != 0 && yours != 0 {
		top := highest(mine & yours)
		if p.ExtendedSpeed()&top != 0 {
			return ""
		}
		if top >= 32 {
			return "Could be 212.5 Gbps"
		}
		return "Could be " + speedExtText(top)
	}
	if p.Extended.LinkSpeedSupported&p.Remote.Extended.LinkSpeedSupported&mad.FDR10 != 0 {
		switch {
		case p.Extended.LinkSpeedActive&mad.FDR10 != 0:
			return ""
		case p.Info.LinkSpeedActive == 4:
			return "Could be FDR10 (Found link at QDR but expected speed is FDR10)"
		}
		return "Could be FDR10"
	}
	top := highest(p.Info.LinkSpeedSupported & p.Remote.Info.LinkSpeedSupported)
	if p.Info.LinkSpeedActive&top != 0 {
		return ""
	}
	return "Could be " + speedText(top)
}

// highest returns the highest bit.
func highest(v uint8) uint8 {
	for b := uint8(0x80); b != 0; b >>= 1 {
		if v&b != 0 {
			return b
		}
	}
	return 0
}

// LinkState returns the state of a link for display in an arrow; additional adds the settings of a switch
// port. The link attributes of a port that is down are meaningless (IBA C14-24.2.1).
func LinkState(p *discovery.Port, additional bool) string {
	i := &p.Info
	states := fmt.Sprintf("%6s/%8s", portState(i.PortState), physicalState(i.PortPhysicalState))
	if i.PortState == mad.PortDown {
		return "(              " + states + ")"
	}
	width, speed := i.LinkWidthActive, speedText(i.LinkSpeedActive)
	if _, known := p.Capabilities(); !known {
		width, speed = 0, speedText(0)
	}
	if e := p.ExtendedSpeed(); e >= 32 {
		speed = "212.5 Gbps"
	} else if e != 0 {
		speed = speedExtText(e)
	} else if p.Extended.LinkSpeedActive&mad.FDR10 != 0 {
		speed = "10.0 Gbps (FDR10)"
	}
	text := fmt.Sprintf("(%3s %18s %s)", widthText(width), speed, states)
	if additional {
		text += fmt.Sprintf(" (HOQ:%d VL_Stall:%d)", i.HOQLife, i.VLStallCount)
	}
	return text
}
