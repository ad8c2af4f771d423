package spool

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/softvpi/softvpi/internal/trace"
)

const (
	pageSize   = 4096
	blockSize  = 64 << 10
	frameHead  = 40
	recordSize = 40
	magic      = 0x46545653 // "SVTF"
	// Least is the least size of a file: two blocks, of which one is whole while the other is written.
	Least = pageSize + 2*blockSize
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// signature begins a file.
const signature = "SVPITRC1"

// Header says what a file is about.
type Header struct {
	Session  string   `json:"session"`
	Program  string   `json:"program"` // version of the driver that wrote it, whose numbers of events and commands it has
	Began    int64    `json:"began"`   // Unix time in ns
	Adapters []string `json:"adapters"`
	Blocks   int      `json:"blocks"`
}

// Writer appends records to a file.
type Writer struct {
	to     io.WriterAt
	blocks int
	block  int    // that is written
	at     int    // offset in it
	seq    uint64 // of the next frame
	total  uint64 // records in all frames
	lost   uint64
	counts []int // records in each block
	buf    []byte
}

// Create begins a file of at most so many bytes. What the file had before must be gone.
func Create(to io.WriterAt, h Header, most int64) (*Writer, error) {
	if most < Least {
		return nil, fmt.Errorf("size is %d bytes; allowed: %d and more", most, Least)
	}
	h.Blocks = int((most - pageSize) / blockSize)
	text, err := json.Marshal(h)
	if err != nil {
		return nil, err
	}
	const head = len(signature) + 8
	if len(text) > pageSize-head { // so many adapters
		h.Adapters = nil
		if text, err = json.Marshal(h); err != nil {
			return nil, err
		}
	}
	page := append(make([]byte, 0, pageSize), signature...)
	page = binary.LittleEndian.AppendUint32(page, uint32(len(text)))
	page = binary.LittleEndian.AppendUint32(page, crc32.Checksum(text, castagnoli))
	page = append(page, text...)
	if _, err := to.WriteAt(page[:pageSize], 0); err != nil {
		return nil, err
	}
	return &Writer{to: to, blocks: h.Blocks, counts: make([]int, h.Blocks)}, nil
}

// Append writes records, and that so many were lost before them. After an error what it wrote may be missing.
func (w *Writer) Append(list []trace.Record, lost uint64) error {
	for len(list) > 0 || lost > 0 {
		room := (blockSize - w.at - frameHead) / recordSize
		if room < 1 {
			w.block, w.at = (w.block+1)%w.blocks, 0
			w.counts[w.block] = 0 // as soon as its first frame is another
			continue
		}
		n := min(len(list), room)
		w.frame(list[:n], lost)
		if _, err := w.to.WriteAt(w.buf, pageSize+int64(w.block)*blockSize+int64(w.at)); err != nil {
			return err
		}
		w.at += len(w.buf)
		w.seq++
		w.total += uint64(n)
		w.lost += lost
		w.counts[w.block] += n
		list, lost = list[n:], 0
	}
	return nil
}

// Usage returns how many records the file has, and how many it has not any more, or never had.
func (w *Writer) Usage() (records int, overwritten uint64) {
	for _, n := range w.counts {
		records += n
	}
	return records, w.total - uint64(records) + w.lost
}

// frame makes the next frame in the buffer.
func (w *Writer) frame(list []trace.Record, lost uint64) {
	le := binary.LittleEndian
	b := le.AppendUint32(w.buf[:0], magic)
	b = le.AppendUint32(b, uint32(len(list)))
	b = le.AppendUint64(b, w.seq)
	b = le.AppendUint64(b, w.total)
	b = le.AppendUint64(b, lost)
	b = le.AppendUint64(b, 0)
	for i := range list {
		r := &list[i]
		b = le.AppendUint64(b, uint64(r.At))
		b = le.AppendUint64(b, uint64(r.Took))
		b = le.AppendUint64(b, r.A)
		b = le.AppendUint64(b, r.B)
		b = le.AppendUint32(b, r.Code)
		b = le.AppendUint16(b, uint16(r.Adapter))
		b = append(b, byte(r.Component), byte(r.Level))
	}
	le.PutUint32(b[32:], crc32.Checksum(b, castagnoli))
	w.buf = b
}
