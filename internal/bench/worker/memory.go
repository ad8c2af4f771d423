package worker

// FarMemory is memory of a worker's process, as others name it.
type FarMemory struct {
	Process int // its ID
	Address uint64
	Length  uint64 // in bytes
}

// CopyArgs request that blocks are copied from memory of a worker's own to that of another, which they cycle through.
type CopyArgs struct {
	To      FarMemory
	Bytes   int // of a block, which divides To.Length
	Seconds float64
}
