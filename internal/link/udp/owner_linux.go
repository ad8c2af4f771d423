package udp

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// ownerOf searches /proc for the socket that has an address and for the process that has the socket open.
func ownerOf(at netip.AddrPort) Owner {
	for _, name := range []string{"/proc/thread-self/net/udp", "/proc/thread-self/net/udp6"} {
		f, err := os.Open(name)
		if err != nil {
			continue
		}
		inode, uid, ok := findSocket(f, at)
		f.Close()
		if ok {
			return socketOwner(inode, uid)
		}
	}
	return Owner{UID: -1}
}

// findSocket reads a table of UDP sockets and returns the inode and user of the one bound to at, or to its
// port on every address.
func findSocket(r io.Reader, at netip.AddrPort) (inode string, uid int, ok bool) {
	s := bufio.NewScanner(r)
	for s.Scan() {
		// sl local_address rem_address st tx:rx tr:when retrnsmt uid timeout inode ...
		f := strings.Fields(s.Text())
		if len(f) < 10 {
			continue
		}
		local, good := parseProcAddress(f[1])
		if !good || local.Port() != at.Port() {
			continue
		}
		if local.Addr().Unmap() != at.Addr().WithZone("") && !local.Addr().IsUnspecified() {
			continue
		}
		uid, err := strconv.Atoi(f[7])
		if err != nil {
			continue
		}
		return f[9], uid, true
	}
	return "", 0, false
}

// parseProcAddress parses an address as printed in /proc/net: words of four bytes in host order, and the
// port, in hexadecimal.
func parseProcAddress(s string) (netip.AddrPort, bool) {
	host, port, ok := strings.Cut(s, ":")
	if !ok {
		return netip.AddrPort{}, false
	}
	p, err := strconv.ParseUint(port, 16, 16)
	if err != nil {
		return netip.AddrPort{}, false
	}
	b, err := hex.DecodeString(host)
	if err != nil || len(b) != 4 && len(b) != 16 {
		return netip.AddrPort{}, false
	}
	for i := 0; i < len(b); i += 4 {
		binary.NativeEndian.PutUint32(b[i:], binary.BigEndian.Uint32(b[i:]))
	}
	a, _ := netip.AddrFromSlice(b)
	return netip.AddrPortFrom(a, uint16(p)), true
}

// socketOwner searches for the process that has a socket open.
func socketOwner(inode string, uid int) Owner {
	o := Owner{UID: uid}
	fds, _ := filepath.Glob("/proc/[0-9]*/fd/*") // the pattern is well formed
	want := "socket:[" + inode + "]"
	for _, fd := range fds {
		if target, err := os.Readlink(fd); err != nil || target != want {
			continue
		}
		pid := strings.Split(fd, "/")[2]
		o.PID, _ = strconv.Atoi(pid) // almost all matches are numbers; others give 0
		name, _ := os.ReadFile("/proc/" + pid + "/comm")
		o.Process = strings.TrimSpace(string(name))
		return o
	}
	// Only root sees every process, and can tell that none has it.
	o.Kernel = uid == 0 && (os.Geteuid() == 0 || moduleLoaded("rdma_rxe"))
	return o
}

func moduleLoaded(name string) bool {
	_, err := os.Stat("/sys/module/" + name)
	return err == nil
}
