// Package ethtool asks Linux for the speed of network interfaces, as ethtool does.
package ethtool

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	getSettings  = 1 // linux/ethtool.h, ETHTOOL_GSET
	halfDuplex   = 0 // DUPLEX_HALF
	unknownSpeed = 1<<32 - 1
	megabit      = 1e6
)

// settings is linux/ethtool.h's ethtool_cmd.
type settings struct {
	cmd           uint32
	_, _          uint32 // supported and advertised modes
	speed         uint16 // in Mb/s, the lower half
	duplex        uint8
	_, _, _, _, _ uint8
	_, _          uint32
	speedHigh     uint16
	_, _          uint8
	_             uint32
	_             [2]uint32
}

// request is struct ifreq with a pointer to data.
type request struct {
	name [unix.IFNAMSIZ]byte
	data unsafe.Pointer
	_    [16]byte
}

// Speed returns the speed of an interface in bit/s, and whether it carries one direction at a time; 0: it has none, or none
// that it knows. fd is any socket of the interface's network namespace.
func Speed(fd int, name string) (bits uint64, half bool) {
	s := settings{cmd: getSettings}
	r := request{data: unsafe.Pointer(&s)}
	if len(name) >= len(r.name) {
		return 0, false
	}
	copy(r.name[:], name)
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&r)))
	runtime.KeepAlive(&s)
	speed := uint32(s.speedHigh)<<16 | uint32(s.speed)
	if errno != 0 || speed == unknownSpeed || speed == 0xffff { // drivers that know 16 bits alone
		return 0, false
	}
	return uint64(speed) * megabit, s.duplex == halfDuplex && speed != 0
}

// Interface is Speed for an interface of the calling thread's namespace.
func Interface(name string) (bits uint64, half bool) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, false
	}
	defer unix.Close(fd)
	return Speed(fd, name)
}
