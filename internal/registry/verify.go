package registry

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"

	"github.com/softvpi/softvpi/internal/os/inputfile"
)

// bbolt maps its file and trusts its pages: a damaged one makes it panic or read outside of the mapping,
// which ends the process. Therefore the structure of a file is checked here before bbolt sees it. The
// format is that of bbolt's version 2 (package go.etcd.io/bbolt/internal/common), little endian on all
// supported platforms.

const (
	maxFile    = 1 << 30 // bytes; far more than a full registry takes
	boltMagic  = 0xed0cdaed
	boltFormat = 2
	noFreelist = ^uint64(0)

	pageHeader  = 16
	metaLength  = 64
	elementSize = 16

	branchPage   = 1
	leafPage     = 2
	metaPage     = 4
	freelistPage = 16

	bucketFlag = 1
)

// verifyFile checks the file at path. The error is errCorrupt or a system error.
func verifyFile(path string) error {
	b, err := inputfile.Read(path, maxFile)
	if wrong := (*inputfile.Error)(nil); errors.As(err, &wrong) {
		return fmt.Errorf("%w: %w", errCorrupt, err)
	}
	if err != nil {
		return err
	}
	return verify(b)
}

// boltFile is what verify knows about a file.
type boltFile struct {
	b    []byte
	page uint64 // size
	high uint64 // pages in use: the first number above them
	seen map[uint64]bool
}

type boltMeta struct{ root, freelist, high, txid uint64 }

// verify checks the bytes of a file.
func verify(b []byte) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("%w: %w", errCorrupt, err)
		}
	}()
	if len(b) > maxFile {
		return errors.New("too large")
	}
	page, m, err := readMetas(b)
	if err != nil {
		return err
	}
	if m.high < 3 || m.high > uint64(len(b))/page {
		return fmt.Errorf("%d pages of %d bytes in a file of %d bytes", m.high, page, len(b))
	}
	f := &boltFile{b: b, page: page, high: m.high, seen: map[uint64]bool{0: true, 1: true}}
	if m.freelist != noFreelist {
		if err := f.freelist(m.freelist); err != nil {
			return err
		}
	}
	return f.tree(m.root, 0, nil)
}

// readMetas returns the page size and the meta page in force: the valid one with the higher number.
func readMetas(b []byte) (page uint64, m boltMeta, err error) {
	first, size, ok := readMeta(b, 0)
	if ok {
		page, m = size, first
	}
	for size := uint64(1024); size <= 65536; size <<= 1 {
		if page != 0 && size != page {
			continue
		}
		second, own, ok2 := readMeta(b, size)
		if ok2 && own == size && (!ok || second.txid > m.txid) {
			return size, second, nil
		}
	}
	if !ok {
		return 0, m, errors.New("no valid meta page")
	}
	return page, m, nil
}

// readMeta reads the meta page at an offset.
func readMeta(b []byte, at uint64) (m boltMeta, page uint64, ok bool) {
	if uint64(len(b)) < at+pageHeader+metaLength {
		return m, 0, false
	}
	p := b[at+pageHeader:]
	le := binary.LittleEndian
	h := fnv.New64a()
	h.Write(p[:56])
	if le.Uint32(p) != boltMagic || le.Uint32(p[4:]) != boltFormat || le.Uint64(p[56:]) != h.Sum64() {
		return m, 0, false
	}
	page = uint64(le.Uint32(p[8:]))
	if page < 1024 || page > 65536 || page&(page-1) != 0 {
		return m, 0, false
	}
	return boltMeta{root: le.Uint64(p[16:]), freelist: le.Uint64(p[32:]), high: le.Uint64(p[40:]), txid: le.Uint64(p[48:])}, page, true
}

// take returns the bytes of page id with its overflow pages, its flags and count, and marks them as used.
func (f *boltFile) take(id uint64) (p []byte, flags, count uint16, err error) {
	if id >= f.high {
		return nil, 0, 0, fmt.Errorf("page %d of %d", id, f.high)
	}
	p = f.b[id*f.page:]
	le := binary.LittleEndian
	if le.Uint64(p) != id {
		return nil, 0, 0, fmt.Errorf("page %d says that it is page %d", id, le.Uint64(p))
	}
	n := uint64(le.Uint32(p[12:])) + 1
	if n > f.high-id {
		return nil, 0, 0, fmt.Errorf("page %d has %d pages", id, n)
	}
	for i := id; i < id+n; i++ {
		if f.seen[i] {
			return nil, 0, 0, fmt.Errorf("page %d has two uses", i)
		}
		f.seen[i] = true
	}
	return p[:n*f.page], le.Uint16(p[8:]), le.Uint16(p[10:]), nil
}

// freelist checks the list of free pages, and marks these as used.
func (f *boltFile) freelist(id uint64) error {
	p, flags, count, err := f.take(id)
	if err != nil {
		return err
	}
	if flags != freelistPage {
		return fmt.Errorf("page %d is not a list of free pages", id)
	}
	n, at := uint64(count), uint64(pageHeader)
	if count == 0xffff {
		n, at = binary.LittleEndian.Uint64(p[at:]), at+8
	}
	if n > (uint64(len(p))-at)/8 {
		return fmt.Errorf("page %d lists %d free pages", id, n)
	}
	for i := range n {
		free := binary.LittleEndian.Uint64(p[at+8*i:])
		if free >= f.high || f.seen[free] {
			return fmt.Errorf("page %d is listed as free", free)
		}
		f.seen[free] = true
	}
	return nil
}

// maxTree is deeper than any tree of pages and buckets in a registry.
const maxTree = 64

// tree checks the pages of a bucket from its root. Their first keys must not be below least.
func (f *boltFile) tree(id uint64, depth int, least []byte) error {
	if depth > maxTree {
		return errors.New("pages are nested too deeply")
	}
	p, flags, count, err := f.take(id)
	if err != nil {
		return err
	}
	switch flags {
	case leafPage:
		return f.leaf(p, count, depth, least)
	case branchPage:
		return f.branch(p, count, depth, least)
	}
	return fmt.Errorf("page %d has kind %#x", id, flags)
}

func (f *boltFile) branch(p []byte, count uint16, depth int, last []byte) error {
	le := binary.LittleEndian
	if count == 0 {
		return errors.New("a branch without leaves")
	}
	for i := range uint64(count) {
		e, err := element(p, i)
		if err != nil {
			return err
		}
		key, err := within(e, le.Uint32(e), le.Uint32(e[4:]))
		if err != nil {
			return err
		}
		if i > 0 && bytes.Compare(key, last) <= 0 {
			return errors.New("keys out of order")
		}
		last = key
		if err := f.tree(le.Uint64(e[8:]), depth+1, key); err != nil {
			return err
		}
	}
	return nil
}

func (f *boltFile) leaf(p []byte, count uint16, depth int, last []byte) error {
	le := binary.LittleEndian
	for i := range uint64(count) {
		e, err := element(p, i)
		if err != nil {
			return err
		}
		flags, pos, ksize, vsize := le.Uint32(e), le.Uint32(e[4:]), le.Uint32(e[8:]), le.Uint32(e[12:])
		key, err := within(e, pos, ksize)
		if err != nil {
			return err
		}
		value, err := within(e[uint64(pos)+uint64(ksize):], 0, vsize)
		if err != nil {
			return err
		}
		if c := bytes.Compare(key, last); c < 0 || c == 0 && i > 0 {
			return errors.New("keys out of order")
		}
		last = key
		if flags&bucketFlag == 0 {
			continue
		}
		if err := f.bucket(value, depth); err != nil {
			return err
		}
	}
	return nil
}

// bucket checks a bucket in a leaf: the number of its root page, or a page within the value itself.
func (f *boltFile) bucket(value []byte, depth int) error {
	if len(value) < 16 {
		return errors.New("a bucket of less than 16 bytes")
	}
	if root := binary.LittleEndian.Uint64(value); root != 0 {
		return f.tree(root, depth+1, nil)
	}
	p := value[16:]
	if len(p) < pageHeader || binary.LittleEndian.Uint16(p[8:]) != leafPage || depth > maxTree {
		return errors.New("a damaged inline bucket")
	}
	return f.leaf(p, binary.LittleEndian.Uint16(p[10:]), depth+1, nil)
}

// element returns the page from its element i on.
func element(p []byte, i uint64) ([]byte, error) {
	at := pageHeader + elementSize*i
	if at+elementSize > uint64(len(p)) {
		return nil, errors.New("more elements than a page holds")
	}
	return p[at:], nil
}

// within returns n bytes at pos of e.
func within(e []byte, pos, n uint32) ([]byte, error) {
	if uint64(pos)+uint64(n) > uint64(len(e)) {
		return nil, errors.New("an element that reaches beyond its page")
	}
	return e[pos : pos+n], nil
}
