package hostside

import "golang.org/x/sys/unix"

// Lend implements Apart.
func (e *tapEnd) Lend(q int, on bool) {
	e.lent &^= 1 << q
	if on {
		e.lent |= 1 << q
	}
	if q < len(e.fds) {
		e.signal(q)
	}
}

// Queue implements Apart.
func (e *tapEnd) Queue(q int) Queue { return tapQueue(e.fds[q]) }

// tapQueue is the descriptor of a queue.
type tapQueue int

// Descriptor implements Queue.
func (q tapQueue) Descriptor() int { return int(q) }

// Write implements Queue.
func (q tapQueue) Write(frame []byte) Outcome {
	for {
		switch _, err := unix.Write(int(q), frame); err {
		case nil:
			return Taken
		case unix.EINTR:
		case unix.EAGAIN:
			return Full
		default:
			return Lost
		}
	}
}

// Read implements Queue.
func (q tapQueue) Read(b []byte) int {
	for {
		switch n, err := unix.Read(int(q), b); err {
		case nil:
			return n
		case unix.EINTR:
		case unix.EAGAIN:
			return 0
		default: // the interface is gone
			return -1
		}
	}
}
