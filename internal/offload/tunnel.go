package offload

import (
	"fmt"

	"github.com/softvpi/softvpi/wire/eth"
	"github.com/softvpi/softvpi/wire/tunnel"
)

// CheckTunnel looks at the checksums of a frame in a tunnel, those of the headers outside and those inside apart. A UDP checksum of 0
// outside means that there is none, and says nothing (RFC 7348, 5).
func CheckTunnel(f *tunnel.Frame, b []byte) (outer, inner Sums) {
	return Check(&f.Outer, b), Check(&f.Inner, b)
}

// MakeTunnel makes the checksums that the frame in a tunnel still needs, then those outside: the IP header's, and UDP's if there is
// to be one, since it covers what is inside. A frame inside that is not whole stays as it is.
func MakeTunnel(s Sums, f *tunnel.Frame, b []byte) {
	Make(s, &f.Inner, b)
	if f.Outer.Version == 4 {
		eth.IPv4(b[f.Outer.Network:f.Outer.Transport]).SetChecksum()
	}
	if f.Kind == tunnel.VXLAN && eth.UDP(b[f.Outer.Transport:]).Checksum() != 0 {
		Make(MakeTransport, &f.Outer, b)
	}
}

// BeginTunnel begins to cut a frame in a tunnel, which is as large as no wire takes: every segment gets the headers outside as well, with
// lengths, identifications and checksums of their own. The task is that of the frame inside. The frame has to stay as it is until the
// last Next. The error is a *formatError.
func (s *Segments) BeginTunnel(t Task, f *tunnel.Frame, frame []byte) error {
	if f.Outer.Version == 6 && f.Outer.Options || f.Outer.Fragment {
		return &formatError{"packet of a tunnel", len(frame), "one without extension headers"}
	}
	if f.Inner.Data > MaxTunnelHeaders {
		return &formatError{"headers", f.Inner.Data, fmt.Sprintf("at most %d bytes", MaxTunnelHeaders)}
	}
	if err := s.begin(t, &f.Inner, frame); err != nil {
		return err
	}
	s.outer, s.kind = f.Outer, f.Kind
	return nil
}

// wrap writes what differs in the headers outside, around a segment with n bytes of payload.
func (s *Segments) wrap(head, body []byte) {
	o := &s.outer
	lengths(o, head, len(body), s.number, s.packet)
	if s.kind != tunnel.VXLAN {
		return
	}
	udp := eth.UDP(head[o.Transport:])
	udp.SetLength(len(head) - o.Transport + len(body))
	if eth.UDP(s.packet[o.Transport:]).Checksum() != 0 {
		sum(o, head, body, udpChecksum)
	}
}
