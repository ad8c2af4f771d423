package spool

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"

	"github.com/softvpi/softvpi/internal/trace"
)

// Contents are what a file has.
type Contents struct {
	Header
	Records     []trace.Record // in the order of time
	Lost        uint64         // that came too fast to be written
	Overwritten uint64         // by later ones
	Damaged     uint64         // frames that are missing between others
}

// ErrNoTrace is the error of a file that is none of this package.
var ErrNoTrace = errors.New("not the file of a trace: it does not begin as one")

// most is the size of the largest file that Read accepts.
const most = pageSize + trace.MostBytes

// Read returns what is whole in a file of size bytes.
func Read(r io.ReaderAt, size int64) (c Contents, err error) {
	if size > most {
		return c, fmt.Errorf("the file has %d bytes; allowed: up to %d", size, int64(most))
	}
	if c.Header, err = header(r); err != nil {
		return c, err
	}
	var all []frame
	b := make([]byte, blockSize)
	for i := 0; i < c.Blocks; i++ {
		n, err := r.ReadAt(b, pageSize+int64(i)*blockSize)
		if err != nil && err != io.EOF {
			return c, err
		}
		all = append(all, framesOf(b[:n])...)
		if n < len(b) {
			break // it was never longer, or is cut
		}
	}
	slices.SortFunc(all, func(a, b frame) int { return cmp.Compare(a.seq, b.seq) })
	c.collect(all)
	return c, nil
}

func header(r io.ReaderAt) (h Header, err error) {
	page := make([]byte, pageSize)
	if _, err := r.ReadAt(page, 0); err != nil && err != io.EOF {
		return h, err
	}
	const head = len(signature) + 8
	n := binary.LittleEndian.Uint32(page[len(signature):])
	if string(page[:len(signature)]) != signature || n > uint32(pageSize-head) {
		return h, ErrNoTrace
	}
	text := page[head : head+int(n)]
	if crc32.Checksum(text, castagnoli) != binary.LittleEndian.Uint32(page[len(signature)+4:]) || json.Unmarshal(text, &h) != nil {
		return h, errors.New("the header of the file is damaged")
	}
	if h.Blocks < 2 || h.Blocks > most/blockSize {
		return h, fmt.Errorf("number of blocks is %d; allowed: 2 to %d", h.Blocks, most/blockSize)
	}
	return h, nil
}

type frame struct {
	seq, before, lost uint64
	records           []trace.Record
}

// framesOf returns the frames that follow each other from the start of a block on.
func framesOf(b []byte) (all []frame) {
	le := binary.LittleEndian
	for len(b) >= frameHead && le.Uint32(b) == magic {
		n := le.Uint32(b[4:])
		if n > blockSize/recordSize || frameHead+int(n)*recordSize > len(b) {
			return all
		}
		whole := b[:frameHead+int(n)*recordSize]
		f := frame{seq: le.Uint64(b[8:]), before: le.Uint64(b[16:]), lost: le.Uint64(b[24:])}
		if !sound(whole) || len(all) > 0 && f.seq != all[len(all)-1].seq+1 {
			return all
		}
		for at := frameHead; at < len(whole); at += recordSize {
			f.records = append(f.records, record(whole[at:]))
		}
		all, b = append(all, f), b[len(whole):]
	}
	return all
}

// sound reports whether a frame is as it was written.
func sound(b []byte) bool {
	var zero [4]byte
	sum := crc32.Update(crc32.Update(crc32.Checksum(b[:32], castagnoli), castagnoli, zero[:]), castagnoli, b[36:])
	return sum == binary.LittleEndian.Uint32(b[32:])
}

func record(b []byte) trace.Record {
	le := binary.LittleEndian
	r := trace.Record{
		At: int64(le.Uint64(b)), Took: int64(le.Uint64(b[8:])), A: le.Uint64(b[16:]), B: le.Uint64(b[24:]), Code: le.Uint32(b[32:]),
		Adapter: int16(le.Uint16(b[36:])), Component: trace.Component(b[38]), Level: trace.Level(b[39]),
	}
	r.Component = min(r.Component, trace.Components-1) // of a later version
	return r
}

// collect takes the records of frames in their order.
func (c *Contents) collect(all []frame) {
	for i, f := range all {
		c.Records = append(c.Records, f.records...)
		c.Lost += f.lost
		if i > 0 && f.seq > all[i-1].seq+1 {
			c.Damaged += f.seq - all[i-1].seq - 1
		}
	}
	if len(all) > 0 {
		c.Overwritten = all[0].before
	}
	slices.SortStableFunc(c.Records, func(a, b trace.Record) int { return cmp.Compare(a.At, b.At) })
}
