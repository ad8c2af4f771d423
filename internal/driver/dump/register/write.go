package register

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"time"
)

// magic begins a port: "SVPR".
const magic = 0x53565052

// header is the first block of a port, without its checksum, which is the dword after it.
type header struct {
	at         time.Time
	generation string
	port       uint64
	ports      uint64
	leftOut    uint64
	layout     uint32
	counts     [maxIDs]uint64 // of the records of each block
}

// headers makes a header's record.
var headerBlock, headers = func() (*Block, func(header) []uint32) {
	columns := []column[header]{
		hex("magic", func(*header) uint64 { return magic }),
		hex("layout", func(h *header) uint64 { return uint64(h.layout) }),
		dec("port_index", func(h *header) uint64 { return h.port }),
		dec("ports", func(h *header) uint64 { return h.ports }),
		wide(Decimal, "unix_seconds", func(h *header) uint64 { return uint64(h.at.Unix()) }),
		dec("nanoseconds", func(h *header) uint64 { return uint64(h.at.Nanosecond()) }),
		text("generation", 2, func(h *header) string { return h.generation }),
		dec("left_out", func(h *header) uint64 { return h.leftOut }),
	}
	for i := range maxIDs {
		columns = append(columns, dec(fmt.Sprintf("records_%x", i), func(h *header) uint64 { return h.counts[i] }))
	}
	b := block(0, "HEADER", "of a port; its checksum is the next dword", func(*Port) []header { return nil }, columns...)
	return b, func(of header) []uint32 {
		record, at := make([]uint32, b.Size()), 0
		for _, c := range columns {
			c.put(&of, record[at:at+c.Dwords])
			at += c.Dwords
		}
		return record
	}
}()

// Dump returns the registers of the ports of a device in the form of mstdump: at most 16 ports.
func Dump(ports []Port) []byte {
	var b bytes.Buffer
	for i := range ports[:min(len(ports), maxPorts)] {
		p := &ports[i]
		h := header{at: p.Time, generation: p.Generation, port: uint64(i), ports: uint64(len(ports)),
			leftOut: uint64(p.Inspection.LeftOut), layout: layoutSum()}
		var all [maxIDs][][]uint32
		for _, x := range Blocks {
			all[x.ID] = x.records(p)
			h.counts[x.ID] = uint64(len(all[x.ID]))
		}
		writePort(&b, uint32(i), headers(h), all)
	}
	return b.Bytes()
}

// writePort writes a port: its header, the checksum of everything else, and the records.
func writePort(b *bytes.Buffer, port uint32, head []uint32, all [maxIDs][][]uint32) {
	base := port << portBits
	var body []pair
	for i, w := range head {
		body = append(body, pair{base + uint32(4*i), w})
	}
	for _, x := range Blocks {
		for i, record := range all[x.ID] {
			at := base + uint32(x.ID)<<idBits + uint32(i*x.Stride)
			for j, w := range record {
				body = append(body, pair{at + uint32(4*j), w})
			}
		}
	}
	for i, p := range body {
		if i == len(head) {
			fmt.Fprintf(b, "0x%08x 0x%08x\n", base+uint32(4*i), checksum(body))
		}
		fmt.Fprintf(b, "0x%08x 0x%08x\n", p.address, p.value)
	}
	if len(body) == len(head) {
		fmt.Fprintf(b, "0x%08x 0x%08x\n", base+uint32(4*len(head)), checksum(body))
	}
}

// pair is a line.
type pair struct{ address, value uint32 }

func checksum(list []pair) uint32 {
	h := crc32.NewIEEE()
	var b [8]byte
	for _, p := range list {
		binary.BigEndian.PutUint32(b[:], p.address)
		binary.BigEndian.PutUint32(b[4:], p.value)
		_, _ = h.Write(b[:])
	}
	return h.Sum32()
}
