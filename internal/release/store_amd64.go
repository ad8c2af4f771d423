//go:build amd64 && !race

package release

// Store32 stores v.
//
// The processor keeps stores in order; and the compiler does across a call that it does
// not look into.
//
//go:noinline
func Store32(p *uint32, v uint32) { *p = v }

// Store64 stores v.
//
//go:noinline
func Store64(p *uint64, v uint64) { *p = v }
