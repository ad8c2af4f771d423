// Package hugepages asks the system for large pages. What cycles through more memory than the processor has translations
// at hand for is copied some per cent faster in them; and memory of another process, which the kernel has to find
// page by page (process_vm_readv), several times as fast. Without them everything works the same.
package hugepages

// Size is the size of the large pages of most processors, in bytes.
const Size = 2 << 20

// whole returns the large pages that lie within length bytes from base, as addresses.
func whole(base, length uint64) (from, to uint64) {
	from = (base + Size - 1) &^ (Size - 1)
	to = (base + length) &^ (Size - 1)
	if from < base || base+length < base || to <= from {
		return 0, 0
	}
	return from, to
}
