// Package hugepages asks the system for large pages. Programs that cycle through more memory than the processor can
// cache translations for copy some per cent faster in them, and simulate thousands of hosts faster; and memory of another
// process, whose pages the kernel has to look up one by one (process_vm_readv), is copied several times as fast.
// Without them everything works the same.
package hugepages

// Size is the size of the large pages of most processors, in bytes.
const Size = 2 << 20

// whole returns the range of whole large pages within length bytes from base.
func whole(base, length uint64) (from, to uint64) {
	from = (base + Size - 1) &^ (Size - 1)
	to = (base + length) &^ (Size - 1)
	if from < base || base+length < base || to <= from {
		return 0, 0
	}
	return from, to
}
