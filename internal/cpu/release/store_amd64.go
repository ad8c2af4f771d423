//go:build amd64 && !race

package release

// Store32 stores v after all earlier stores.
//
// The processor keeps stores in order, and so does the compiler across a call that it does not inline.
//
//go:noinline
func Store32(p *uint32, v uint32) { *p = v }

// Store64 stores v after all earlier stores.
//
//go:noinline
func Store64(p *uint64, v uint64) { *p = v }
