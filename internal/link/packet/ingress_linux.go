package packet

import (
	"encoding/binary"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// Programs of tc at the ingress of an interface drop, change and redirect packets before the system's IP
// input. If there are none, the ring need not wait for them, nor for IP.

// ingressParent is the parent of the qdiscs at an interface's ingress, ingress and clsact (TC_H_INGRESS of
// linux/pkt_sched.h).
const ingressParent = 0xfffffff1

// tcMsgLen is the length of struct tcmsg (linux/rtnetlink.h).
const tcMsgLen = 20

// filtersIngress reports whether tc handles what arrives on an interface, or whether that cannot be
// determined. socket is a socket in the interface's network namespace, and own the id of the caller's
// gate, 0 if it has none.
func (s *system) filtersIngress(index, socket int, own ebpf.ProgramID) bool {
	return s.ingressQdisc(index) || tcxPrograms(index, socket, own)
}

// ingressQdisc asks for all qdiscs: the answer to a request for a single one would be sent to everybody
// who follows changes.
func (s *system) ingressQdisc(index int) bool {
	s.request = request(s.request, unix.RTM_GETQDISC, unix.NLM_F_REQUEST|unix.NLM_F_DUMP, make([]byte, tcMsgLen))
	if unix.Sendto(s.ask, s.request, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}) != nil {
		return true
	}
	found := false
	for {
		n, err := unix.Read(s.ask, s.answer[:])
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return true
		}
		for b := s.answer[:n]; ; {
			kind, body, rest := nextMessage(b)
			if body == nil {
				break
			}
			switch kind {
			case unix.RTM_NEWQDISC:
				q, ok := parseQdisc(body)
				found = found || !ok || q.out == index && q.parent == ingressParent
			case unix.NLMSG_DONE:
				return found
			case unix.NLMSG_ERROR:
				return true
			}
			b = rest
		}
	}
}

// qdisc is the location of a queueing discipline.
type qdisc struct {
	out    int // index of the interface
	parent uint32
}

// parseQdisc decodes an RTM_NEWQDISC or RTM_DELQDISC.
func parseQdisc(b []byte) (q qdisc, ok bool) {
	if len(b) < tcMsgLen {
		return q, false
	}
	return qdisc{number(b[4:]), binary.NativeEndian.Uint32(b[12:])}, true
}

// tcxPrograms reports whether programs other than gates are attached to an interface's ingress, or whether
// that cannot be determined: the system answers for the namespace of the calling thread, and requires
// CAP_NET_ADMIN. own is the caller's gate; recognizing others requires CAP_SYS_ADMIN.
func tcxPrograms(index, socket int, own ebpf.ProgramID) bool {
	if !sameNamespace(socket) {
		return true
	}
	there, err := entrancePrograms(index)
	return err != nil || slices.ContainsFunc(there, func(p link.AttachedProgram) bool { return p.ID != own && !isGate(p.ID) })
}

// sameNamespace reports whether a socket is in the network namespace of this thread.
func sameNamespace(socket int) bool {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	here, err := unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE)
	if err != nil {
		return false
	}
	there, err := unix.GetsockoptUint64(socket, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE)
	return err == nil && here == there
}
