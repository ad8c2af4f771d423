package ring

import "unsafe"

// Private is a Backing of ordinary memory, for rings with both sides in this process.
func Private(_ uint32, size int) ([]byte, error) {
	b := make([]byte, size+arenaAlign)
	pad := -uintptr(unsafe.Pointer(&b[0])) % arenaAlign
	return b[pad : int(pad)+size : int(pad)+size], nil
}
