package lease

// Neighbour is the connection to an attached program that takes part in the direct path, as far as the
// loop needs it. The methods are called with the loop lock held: they must not block or call into the Host.
// Peers are of the same type.
type Neighbour interface {
	// Keys returns the memory of the program's key table, direct.TableSize bytes.
	Keys() []byte
	// Share allocates zeroed memory of size bytes, aligned to 64, that both this program and peer map.
	Share(peer Neighbour, size int) (Place, []byte, error)
	// Unshare frees that memory.
	Unshare(peer Neighbour, at Place)
	// Whole reports whether peers can be given all arenas of the program. Otherwise its connections stay in
	// the engine.
	Whole() bool
	// Process returns the number under which peer knows this program's process, so that it may copy to and
	// from its memory; 0: it may not. It changes when the program moves to another process.
	Process(peer Neighbour) uint32
	// Introduce tells the program about a pair, after sending everything of peer that it needs for it.
	Introduce(peer Neighbour, i Introduction)
	// End disconnects the program.
	End(cause error)
}

// Place is the location of shared memory: in an area of the two programs.
type Place struct {
	Area   uint32
	_      uint32
	Offset uint64
}

// Introduction tells a program about the direct path of a QP.
type Introduction struct {
	QP     uint32 // handle
	Number uint32
	Role   uint32 // the direction that the program initiates
	Owner  uint32 // its owner number for claiming slots of completion queues
	Record Place
}
