package pcapng

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// The block types that cutting needs to know (pcapng draft, 4 and 11.1).
const (
	blockInterface  = 1
	blockStatistics = 5
	blockPacket     = 6
	blockSection    = 0x0a0d0d0a

	blockHead = 8
	maxBlock  = 1 << 20 // longer than any block of Writer
	maxHeader = 1 << 16 // total of all section and interface blocks

	optionReceived = 4 // isb_ifrecv
	optionDropped  = 5 // isb_ifdrop
	statisticsHead = 12
)

// Files takes a pcapng stream and stores it in files: one, or a ring of several of limited size, each of
// which can be read by itself. It understands the blocks' frames, not the packets.
type Files struct {
	path  string
	limit int64 // of a file; 0: one file without limit
	keep  int

	out      io.WriteCloser
	size     int64
	made     []string
	number   int
	header   []byte
	block    []byte // the beginning of an incomplete block
	packets  uint64
	most     uint64
	finished bool
	received uint64
	dropped  uint64
	open     func(name string) (io.WriteCloser, error)
}

// NewFiles writes to path. With a limit above 0 a new file is started before the current one would exceed
// that many bytes, and only the newest keep files are kept: they get a number before the extension.
func NewFiles(path string, limit int64, keep int) (*Files, error) {
	f := &Files{path: path, limit: limit, keep: keep, open: create}
	return f, f.next()
}

// NewStream writes to a stream, such as standard output, that is not split.
func NewStream(w io.Writer) *Files { return &Files{out: unclosed{w}} }

func create(name string) (io.WriteCloser, error) { return os.Create(name) }

type unclosed struct{ io.Writer }

func (unclosed) Close() error { return nil }

// Most drops everything after that many packets; 0: nothing.
func (f *Files) Most(packets uint64) { f.most = packets }

// errFormat says that the input is not a pcapng stream.
var errFormat = errors.New("not a pcapng stream")

// Write takes the next bytes of the stream.
func (f *Files) Write(b []byte) (int, error) {
	n := len(b)
	for len(b) > 0 {
		whole, rest, err := f.take(b)
		if err != nil {
			return n - len(b), err
		}
		b = rest
		if whole {
			if err := f.put(f.block); err != nil {
				return n - len(b), err
			}
			f.block = f.block[:0]
		}
	}
	return n, nil
}

// take adds bytes of b to the current block and reports whether it is complete.
func (f *Files) take(b []byte) (whole bool, rest []byte, err error) {
	want := blockHead
	if len(f.block) >= blockHead {
		want = int(binary.LittleEndian.Uint32(f.block[4:]))
		if want < blockHead+4 || want > maxBlock || want%4 != 0 {
			return false, nil, fmt.Errorf("%w: a block of %d bytes", errFormat, want)
		}
	}
	k := min(want-len(f.block), len(b))
	f.block = append(f.block, b[:k]...)
	return len(f.block) == want && want > blockHead, b[k:], nil
}

func (f *Files) put(block []byte) error {
	switch binary.LittleEndian.Uint32(block) {
	case blockSection, blockInterface:
		if len(f.header)+len(block) > maxHeader {
			return fmt.Errorf("%w: headers of more than %d bytes", errFormat, maxHeader)
		}
		f.header = append(f.header, block...)
	case blockPacket:
		if f.most > 0 && f.packets >= f.most {
			return nil
		}
		f.packets++
		if f.limit > 0 && f.size+int64(len(block)) > f.limit && f.size > int64(len(f.header)) {
			if err := f.next(); err != nil {
				return err
			}
			if err := f.write(f.header); err != nil {
				return err
			}
		}
	case blockStatistics:
		f.statistics(block)
	}
	return f.write(block)
}

func (f *Files) write(b []byte) error {
	n, err := f.out.Write(b)
	f.size += int64(n)
	return err
}

// next starts the next file and deletes those above the number to keep.
func (f *Files) next() error {
	if f.out != nil {
		if err := f.out.Close(); err != nil {
			return err
		}
	}
	name := f.path
	if f.limit > 0 {
		f.number++
		ext := filepath.Ext(f.path)
		name = fmt.Sprintf("%s-%05d%s", strings.TrimSuffix(f.path, ext), f.number, ext)
	}
	out, err := f.open(name)
	if err != nil {
		f.out = unclosed{io.Discard}
		return err
	}
	f.out, f.size = out, 0
	f.made = append(f.made, name)
	for f.limit > 0 && len(f.made) > f.keep {
		if err := os.Remove(f.made[0]); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		f.made = f.made[1:]
	}
	return nil
}

// statistics adds up the counts in an interface's statistics.
func (f *Files) statistics(block []byte) {
	if len(block) < blockHead+statisticsHead+4 {
		return
	}
	f.finished = true
	for b := block[blockHead+statisticsHead : len(block)-4]; len(b) >= 4; {
		code, n := binary.LittleEndian.Uint16(b), int(binary.LittleEndian.Uint16(b[2:]))
		if code == 0 || len(b) < 4+n {
			return
		}
		if v := b[4 : 4+n]; n == 8 {
			switch code {
			case optionReceived:
				f.received += binary.LittleEndian.Uint64(v)
			case optionDropped:
				f.dropped += binary.LittleEndian.Uint64(v)
			}
		}
		b = b[4+min(len(b)-4, (n+3)&^3):]
	}
}

// Counts returns how many packets were written and, if the stream has ended with its statistics, how many
// the capture missed.
func (f *Files) Counts() (written, missed uint64, finished bool) {
	return f.packets, f.dropped, f.finished
}

// Names returns the files that are kept, oldest first.
func (f *Files) Names() []string { return f.made }

// Close closes the current file. The error is errFormat if the stream ended within a block.
func (f *Files) Close() error {
	err := f.out.Close()
	if len(f.block) > 0 {
		err = errors.Join(err, fmt.Errorf("%w: it ends within a block", errFormat))
	}
	return err
}
