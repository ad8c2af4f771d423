package command

// OpenXRCD opens an XRC domain (IBA annex A14.2). Programs of one user that name the same file share it.
type OpenXRCD struct {
	Adapter uint32
	Flags   uint32
	// Device and Inode identify the file (st_dev and st_ino of stat), with XRCDFile.
	Device, Inode uint64
}

// Flags of OpenXRCD.
const (
	XRCDCreate    uint32 = 1 << iota // create the domain if there is none
	XRCDExclusive                    // there must be none
	XRCDFile                         // the domain of a file; without it, a new one that nobody shares
)

// CreateXRCSRQ creates a shared receive queue in an XRC domain. What it receives completes in CQ.
type CreateXRCSRQ struct {
	CreateSRQ CreateSRQ
	XRCD, CQ  Handle
}

// OpenQP opens the target QP with this number in an XRC domain.
type OpenQP struct {
	XRCD    Handle
	Number  uint32
	Context uint64 // returned in events by this handle
}
