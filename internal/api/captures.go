package api

import (
	"time"
)

// CaptureRequest says what to capture.
type CaptureRequest struct {
	Adapter string `query:"adapter" json:"adapter" required:"true" doc:"By name."`
	Snap    int    `query:"snap" json:"snap,omitempty" doc:"Bytes that are kept of each packet; 0: all."`
	Ring    int    `query:"ring" json:"ring,omitempty" doc:"Bytes of memory between the data path and the reader; 0: 16 MiB."`
	QP      uint32 `query:"qp" json:"qp,omitempty" doc:"Only the packets of the queue pair with this number; 0: all packets."`
	// Comments needs a QP.
	Comments bool `query:"comments" json:"comments,omitempty" doc:"With qp, a comment of each packet: what the adapter did with it, or why it was sent, and how far the queue pair was."`
}

// CaptureFileRequest asks for a capture that the driver writes to a file.
type CaptureFileRequest struct {
	CaptureRequest
	File string `json:"file" doc:"Absolute path, on the driver's machine."`
}

// CaptureStatus describes a capture that runs or has ended.
type CaptureStatus struct {
	ID      string    `json:"id"`
	Adapter string    `json:"adapter"`
	QP      uint32    `json:"qp,omitempty" doc:"Whose packets alone are captured."`
	File    string    `json:"file,omitempty" doc:"Which the driver writes; absent: the capture goes to a reader."`
	Started time.Time `json:"started"`
	Running bool      `json:"running"`
	Packets uint64    `json:"packets" doc:"Captured."`
	Missed  uint64    `json:"missed" doc:"Packets that found no room."`
	Problem string    `json:"problem,omitempty" doc:"Why the capture ended by itself."`
}

// CaptureHeader is the header of the answer that names a capture, to end it by.
const CaptureHeader = "Softvpi-Capture"
