//go:build !unix

package udp

// descriptorShare returns how many sockets all pools may have: this system sets no limit to a process.
func descriptorShare() int64 { return 1 << 32 }
