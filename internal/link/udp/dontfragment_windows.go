package udp

import "golang.org/x/sys/windows"

// dontFragment sets the don't-fragment bit of outgoing packets, which the ICRC covers.
func dontFragment(fd uintptr, v4 bool) error {
	const option = 14 // IP_DONTFRAGMENT and IPV6_DONTFRAG of ws2ipdef.h
	level := windows.IPPROTO_IPV6
	if v4 {
		level = windows.IPPROTO_IP
	}
	return windows.SetsockoptInt(windows.Handle(fd), level, option, 1)
}
