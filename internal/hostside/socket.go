package hostside

import "fmt"

// mostPath is the longest path of a unix socket (sockaddr_un, with the 0 at its end).
const mostPath = 107

// OpenDatagram opens a host's end at a unix datagram socket, of which a virtual machine has the other side: each datagram is an
// Ethernet frame (QEMU's -netdev dgram). local is made in place of one that nobody has any more; remote is the other side's,
// which may come and go. The error is errors.ErrUnsupported on other systems than Linux, or the system's.
func OpenDatagram(local, remote string) (End, error) {
	if err := checkPath(local); err != nil {
		return nil, err
	}
	if err := checkPath(remote); err != nil {
		return nil, err
	}
	return openSocket(local, remote)
}

// OpenStream opens a host's end at a unix stream socket on which it listens for a virtual machine: frames with their length, in
// four bytes, before them (QEMU's -netdev stream). One is connected at a time; another may follow it. Errors as OpenDatagram.
func OpenStream(path string) (End, error) {
	if err := checkPath(path); err != nil {
		return nil, err
	}
	return listen(path)
}

func checkPath(path string) error {
	if path == "" || len(path) > mostPath {
		return fmt.Errorf("host: socket %q: want a path of 1 to %d bytes", path, mostPath)
	}
	return nil
}
