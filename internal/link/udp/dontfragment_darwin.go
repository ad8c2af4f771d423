package udp

import "golang.org/x/sys/unix"

// dontFragment sets the don't-fragment bit of outgoing packets, which the ICRC covers.
func dontFragment(fd uintptr, v4 bool) error {
	if v4 {
		const ipDontFragment = 28 // IP_DONTFRAG of netinet/in.h, since macOS 11
		return unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, ipDontFragment, 1)
	}
	return unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_DONTFRAG, 1)
}
