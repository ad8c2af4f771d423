package verbs

import "github.com/softvpi/softvpi/internal/command"

// FrameOptions are what a RawPacket QP does with the frames that it receives (ibv_wq_flags). With a driver that has none
// (FrameFlags) they are refused with ErrUnsupported.
type FrameOptions uint32

// The options.
const (
	// StripVLAN takes the C-VLAN tag (EtherType 0x8100) off a frame that begins with one; WC.VLAN has it.
	StripVLAN = FrameOptions(command.QPStripVLAN)
	// ScatterFCS puts the frame check sequence, four bytes, behind a frame: that of the frame with its tag.
	ScatterFCS = FrameOptions(command.QPScatterFCS)
	// DelayDrop lets up to 1,024 frames that find no receive wait for one, each for up to 100 ms; those behind it wait as well.
	DelayDrop = FrameOptions(command.QPDelayDrop)

	allFrameOptions = StripVLAN | ScatterFCS | DelayDrop
)

// checkFrames asks whether the driver has what a RawPacket QP needs.
func (c *QPConfig) checkFrames(d *Device) error {
	p, err := d.FramePort()
	switch {
	case err != nil:
		return err
	case c.Headers > 0 && p.Offloads&FrameLargeSends == 0:
		return newError("create qp", ErrUnsupported, "the driver cuts no large sends")
	case (c.Frames != 0 || c.BlockSelf) && p.Offloads&FrameFlags == 0:
		return newError("create qp", ErrUnsupported, "the driver has no options for frames")
	}
	return nil
}

// SetFrameOptions changes those of the options that are in mask, for frames that are received from now on.
func (q *QP) SetFrameOptions(o, mask FrameOptions) error {
	if bad := (o | mask) &^ allFrameOptions; bad != 0 {
		return newError("set frame options", ErrInvalid, "options %#x, want bits of %#x", uint32(bad), uint32(allFrameOptions))
	}
	h := q.pd.dev.host
	return wrap("set frame options", h.backend.SetFrameFlags(h.ctx, command.SetFrameFlags{QP: q.handle, Flags: uint32(o), Mask: uint32(mask)}))
}

// VLAN returns the control information of the tag that was taken off a frame (StripVLAN), 0 if there was none.
func (w *WC) VLAN() uint16 {
	if w.Op != CompletedRecv || w.Flags&(WithImm|WithInvalidated) != 0 {
		return 0
	}
	return uint16(w.Imm)
}

// Hash returns the Toeplitz hash by which an RSS has chosen the QP for a frame: 0 if it had none of the fields, or came by no RSS.
func (w *WC) Hash() uint32 {
	if w.Op != CompletedRecv || w.Flags&WithGRH != 0 {
		return 0
	}
	return w.SrcQP
}
