package prefetch

import (
	"testing"
	"unsafe"
)

// Prefetching changes nothing, whatever part of a line it is given.
func TestAskingChangesNothing(t *testing.T) {
	var word [16]uint64
	for i := range word {
		word[i] = uint64(i)
	}
	for i := range word {
		Read(unsafe.Pointer(&word[i]))
		Write(unsafe.Pointer(&word[i]))
		Lines(unsafe.Pointer(&word[i]), unsafe.Sizeof(word)-uintptr(8*i))
	}
	Read(nil)
	Write(nil)
	Lines(nil, 4096)
	Lines(unsafe.Pointer(&word), 0)
	for i, v := range word {
		if v != uint64(i) {
			t.Errorf("word %d is %d after the prefetch", i, v)
		}
	}
}
