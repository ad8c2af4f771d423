package command

// AllocDM allocates device memory: memory that the adapter has, within the limit that MemoryInfo shows.
type AllocDM struct {
	Adapter uint32
	_       uint32
	Size    uint64 // bytes
}

// DeviceMemory is device memory of a program. To an attached program it is a shared segment: RegisterMemory names Segment.
type DeviceMemory struct {
	Handle  Handle
	Segment uint32 // 0 for a program in the adapter's process
	Size    uint64
}

// MemoryInfo says how much device memory an adapter has.
type MemoryInfo struct {
	Size uint64 // bytes, of all programs together
	Free uint64
	_    [6]uint64
}
