package ring

import "unsafe"

// Private is a Backing of ordinary memory of this process, for rings whose both
// sides are in it.
func Private(_ uint32, size int) ([]byte, error) {
	b := make([]byte, size+arenaAlign)
	pad := -uintptr(unsafe.Pointer(&b[0])) % arenaAlign
	return b[pad : int(pad)+size : int(pad)+size], nil
}
