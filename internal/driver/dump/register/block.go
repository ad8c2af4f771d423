package register

import (
	"fmt"
	"hash/crc32"
	"strings"
)

// Block is a table of the register space.
type Block struct {
	ID      int
	Name    string
	About   string
	Fields  []Field
	Stride  int // bytes from one record to the next, a power of two
	records func(*Port) [][]uint32
}

const (
	idBits   = 24
	portBits = 28
	// maxBlock is how many bytes of addresses a block has, and maxPorts how many ports a file can have.
	maxBlock = 1 << idBits
	maxPorts = 16
	maxIDs   = 1 << (portBits - idBits)
)

// Size returns how many dwords a record has.
func (b *Block) Size() (n int) {
	for i := range b.Fields {
		n += b.Fields[i].Dwords
	}
	return n
}

// Values returns a record's fields. It must have Size dwords.
func (b *Block) Values(record []uint32) (list []Value) {
	for i := range b.Fields {
		f := &b.Fields[i]
		list = append(list, Value{f, record[:f.Dwords]})
		record = record[f.Dwords:]
	}
	return list
}

// block makes a block of columns, and of a function that returns what its records are made of.
func block[T any](id int, name, about string, all func(*Port) []T, columns ...column[T]) *Block {
	b := &Block{ID: id, Name: name, About: about}
	for _, c := range columns {
		b.Fields = append(b.Fields, c.Field)
	}
	size := b.Size()
	for b.Stride = 4; b.Stride < 4*size; b.Stride *= 2 {
	}
	b.records = func(p *Port) (out [][]uint32) {
		list := all(p)
		for i := range list[:min(len(list), maxBlock/b.Stride)] {
			record, at := make([]uint32, size), 0
			for _, c := range columns {
				c.put(&list[i], record[at:at+c.Dwords])
				at += c.Dwords
			}
			out = append(out, record)
		}
		return out
	}
	return b
}

// Records returns the records of a port in a block.
func (b *Block) Records(p *Port) [][]uint32 { return b.records(p) }

// BlockOf returns the block of that name, or nil.
func BlockOf(name string) *Block {
	for _, b := range Blocks {
		if strings.EqualFold(b.Name, name) {
			return b
		}
	}
	return nil
}

// Layout returns the table of all blocks as text: of each its number, stride and name, and below it the offset, dwords, form and name
// of each field.
func Layout() string {
	var t strings.Builder
	for _, b := range append([]*Block{headerBlock}, Blocks...) {
		fmt.Fprintf(&t, "block 0x%x stride 0x%x %s: %s\n", b.ID, b.Stride, b.Name, b.About)
		at := 0
		for i := range b.Fields {
			fmt.Fprintf(&t, "  %s\n", b.Fields[i].describe(at))
			at += b.Fields[i].Dwords
		}
	}
	return t.String()
}

// layoutSum identifies the layout: a file of another one cannot be read.
func layoutSum() uint32 { return crc32.ChecksumIEEE([]byte(Layout())) }
