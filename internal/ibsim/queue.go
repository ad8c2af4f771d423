package ibsim

// chunkLen is how many datagrams a chunk of a queue holds: memory is taken and given back by the chunk, so that a queue
// holds little more than what is in it.
const chunkLen = 32

// queue holds the datagrams that a client has not read, in their order. The zero value is empty.
type queue struct {
	chunks []*[chunkLen][dataLen]byte
	first  int // of the first chunk, which datagram is next
	count  int
}

func (q *queue) push(b *[dataLen]byte) {
	at := q.first + q.count
	if at == len(q.chunks)*chunkLen {
		q.chunks = append(q.chunks, new([chunkLen][dataLen]byte))
	}
	q.chunks[at/chunkLen][at%chunkLen] = *b
	q.count++
}

// next returns the first datagram of a queue that is not empty.
func (q *queue) next() *[dataLen]byte { return &q.chunks[0][q.first] }

// drop removes the first datagram.
func (q *queue) drop() {
	q.first++
	q.count--
	switch {
	case q.count == 0:
		*q = queue{}
	case q.first == chunkLen:
		q.chunks[0], q.first = nil, 0
		q.chunks = q.chunks[1:]
	}
}
