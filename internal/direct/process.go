package direct

import "github.com/softvpi/softvpi/internal/ring"

// Process is access to the memory of another process, of which nothing is mapped here.
type Process interface {
	// Write copies near, in this process, to the pieces of far, which are as long altogether. It copies them
	// in order, each after the ones before it. It reports whether everything was copied; if not, some may
	// have been.
	Write(far []Piece, near [][]byte) bool
	// Read copies far to near likewise.
	Read(near [][]byte, far []Piece) bool
}

// Piece is memory of another process.
type Piece struct{ Address, Length uint64 }

// farTail is how many of a message's last bytes are a piece of their own: a program may poll the last byte of
// an RDMA write, and there is no order within a piece.
const farTail = 8

// pieces is the memory of the peer's process that a request names.
type pieces struct {
	list [ring.MaxSGE + 1]Piece // one more for the tail
	n    int
	of   Process
}

// start forgets the pieces of the previous request.
func (p *pieces) start() { p.n = 0 }

func (p *pieces) add(address, n uint64) {
	p.list[p.n] = Piece{address, n}
	p.n++
}

// limit cuts the pieces to n bytes in total.
func (p *pieces) limit(n uint64) {
	for k := range p.list[:p.n] {
		if q := &p.list[k]; n <= q.Length {
			q.Length, p.n = n, k+1
			return
		}
		n -= p.list[k].Length
	}
}

// split separates the last bytes.
func (p *pieces) split() {
	q := &p.list[p.n-1]
	if q.Length <= farTail {
		return
	}
	q.Length -= farTail
	p.add(q.Address+q.Length, farTail)
}

// reachFar finds n bytes at an address of the peer's process.
func (i *Initiator) reachFar(address, n uint64) reason {
	if i.terms.PeerProcess == 0 || i.env.Process == nil {
		return notShared
	}
	p, coming := i.env.Process(i.terms.PeerProcess)
	switch {
	case coming:
		return notIntroduced
	case p == nil:
		return notReached
	}
	i.far.of = p
	i.far.add(address, n)
	return noReason
}

// putFar copies n bytes of the request's memory to that of the peer's process, the last bytes last.
func (i *Initiator) putFar(n uint64) reason {
	i.far.limit(n)
	i.far.split()
	if !i.far.of.Write(i.far.list[:i.far.n], i.local[:i.locals]) {
		return notCopied
	}
	return noReason
}

// getFar copies the memory of the peer's process to the request's.
func (i *Initiator) getFar() reason {
	if !i.far.of.Read(i.local[:i.locals], i.far.list[:i.far.n]) {
		return notCopied
	}
	return noReason
}
