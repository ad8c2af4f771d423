//go:build !linux

package bench

import "net"

var enclosedAddrs [2]net.IPNet
