package verbs

// Prefetch makes the pages of n bytes from offset, for writing too if write is set, so that the first message need not
// wait for them. It is of use for a region that is OnDemand; others have had theirs made. ErrInvalid: the range is not in
// the region, or it is to be written to and the region lacks LocalWrite. ErrAccess: part of it is not memory of the program
// any more. Where the system cannot (other than Linux) it does nothing.
func (mr *MR) Prefetch(offset, n int, write bool) error {
	mr.mu.Lock()
	defer mr.mu.Unlock()
	switch {
	case mr.done:
		return newError("prefetch", ErrInvalid, "the region is deregistered")
	case offset < 0 || n < 0 || offset > len(mr.buf) || n > len(mr.buf)-offset:
		return newError("prefetch", ErrInvalid, "%d bytes from %d, want them within the region's %d", n, offset, len(mr.buf))
	case write && mr.access&LocalWrite == 0:
		return newError("prefetch", ErrInvalid, "the region has no LocalWrite")
	case n == 0:
		return nil
	}
	if err := populate(mr.buf[offset:offset+n], write); err != nil {
		return newError("prefetch", ErrAccess, "%v", err)
	}
	return nil
}
