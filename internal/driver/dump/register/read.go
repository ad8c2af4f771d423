package register

import (
	"bufio"
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Decoded is a port as a file has it.
type Decoded struct {
	Time       time.Time
	Generation string
	LeftOut    uint64
	Tables     []Table // one for each of Blocks
}

// Table is a block of a port.
type Table struct {
	*Block
	Records [][]uint32
}

// DamageError says that a file is no register dump, or damaged.
type DamageError struct {
	Line int // 0: the file as a whole
	Why  string
}

func (e *DamageError) Error() string {
	if e.Line == 0 {
		return e.Why
	}
	return fmt.Sprintf("line %d: %s", e.Line, e.Why)
}

// most is how many lines a file may have: 16 ports with all that Dump writes of one are less.
const most = 16 << 20

// Read returns the ports that a file has. The error is a *DamageError.
func Read(file []byte) (ports []Decoded, err error) {
	r := &reader{}
	if err := r.parse(file); err != nil {
		return nil, err
	}
	for n := uint32(0); ; n++ {
		d, total, err := r.port(n)
		if err != nil {
			return nil, err
		}
		ports = append(ports, d)
		if uint64(n)+1 == total {
			break
		}
	}
	if len(r.rest) > 0 {
		return nil, r.damage("0x%08x is no address of the layout here; what is expected is the end of the file", r.rest[0].address)
	}
	return ports, nil
}

// reader takes the dwords of a file from first to last.
type reader struct {
	rest  []pair
	lines []int // of rest
	count int
}

func (r *reader) damage(format string, args ...any) error {
	e := &DamageError{Why: fmt.Sprintf(format, args...)}
	if len(r.lines) > 0 {
		e.Line = r.lines[0]
	}
	return e
}

// parse reads the lines. Empty ones, and those that begin with #, say nothing.
func (r *reader) parse(file []byte) error {
	s := bufio.NewScanner(bytes.NewReader(file))
	for line := 1; s.Scan(); line++ {
		text := strings.TrimSpace(s.Text())
		if text == "" || text[0] == '#' {
			continue
		}
		p, ok := parsePair(text)
		if !ok {
			return &DamageError{line, fmt.Sprintf("%.40q; allowed: 0xADDRESS 0xVALUE, with 8 digits each", text)}
		}
		if len(r.rest) == most {
			return &DamageError{line, fmt.Sprintf("more than %d dwords", most)}
		}
		r.rest, r.lines = append(r.rest, p), append(r.lines, line)
	}
	if err := s.Err(); err != nil {
		return &DamageError{0, "a line is too long for a register dump"}
	}
	if len(r.rest) == 0 {
		return &DamageError{0, "the file has no dwords; allowed: lines 0xADDRESS 0xVALUE"}
	}
	return nil
}

func parsePair(text string) (p pair, ok bool) {
	a, v, ok := strings.Cut(text, " ")
	if !ok {
		return p, false
	}
	p.address, ok = parseDword(a)
	if !ok {
		return p, false
	}
	p.value, ok = parseDword(strings.TrimSpace(v))
	return p, ok
}

func parseDword(s string) (uint32, bool) {
	digits, ok := strings.CutPrefix(s, "0x")
	if !ok || len(digits) != 8 {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 16, 32)
	return uint32(n), err == nil
}

// take returns the next dword, which must be at that address.
func (r *reader) take(address uint32, what string) (uint32, error) {
	if len(r.rest) == 0 {
		return 0, &DamageError{0, fmt.Sprintf("the file ends before 0x%08x, %s", address, what)}
	}
	p := r.rest[0]
	if p.address != address {
		return 0, r.damage("address 0x%08x; expected is 0x%08x, %s", p.address, address, what)
	}
	r.rest, r.lines = r.rest[1:], r.lines[1:]
	r.count++
	return p.value, nil
}

// record returns the next record, which begins at that address.
func (r *reader) record(at uint32, b *Block, i int) ([]uint32, error) {
	what := fmt.Sprintf("%s %d", b.Name, i)
	var out []uint32
	for j := range b.Size() {
		w, err := r.take(at+uint32(4*j), what)
		if err != nil {
			return nil, err
		}
		out = append(out, w)
	}
	return out, nil
}

// port reads a port, and returns with it how many ports the file says it has.
func (r *reader) port(n uint32) (d Decoded, ports uint64, err error) {
	base, before := n<<portBits, r.rest
	head, err := r.record(base, headerBlock, 0)
	if err != nil {
		return d, 0, err
	}
	v := headerBlock.Values(head)
	field := func(i int) uint64 { return v[i].Number() }
	switch {
	case field(0) != magic:
		return d, 0, &DamageError{0, fmt.Sprintf("port %d begins with 0x%x; expected is 0x%x, of the registers of a SoftVPI adapter", n,
			field(0), magic)}
	case uint32(field(1)) != layoutSum():
		return d, 0, &DamageError{0, fmt.Sprintf("the registers have layout %08x; this program reads %08x: use the version that wrote them",
			field(1), layoutSum())}
	case field(2) != uint64(n) || field(3) <= uint64(n) || field(3) > maxPorts:
		return d, 0, &DamageError{0, fmt.Sprintf("port %d says that it is number %d of %d; allowed: at most %d ports, in order", n, field(2),
			field(3), maxPorts)}
	}
	sum, err := r.take(base+uint32(4*len(head)), "the checksum")
	if err != nil {
		return d, 0, err
	}
	d = Decoded{Time: time.Unix(int64(field(4)), int64(field(5)&(1<<30-1))).UTC(), Generation: v[6].String(), LeftOut: field(7)}
	for _, b := range Blocks {
		t := Table{Block: b}
		for i := range field(8 + b.ID) {
			if i >= uint64(maxBlock/b.Stride) {
				return d, 0, &DamageError{0, fmt.Sprintf("%d records of %s; allowed: at most %d", field(8+b.ID), b.Name, maxBlock/b.Stride)}
			}
			record, err := r.record(base+uint32(b.ID)<<idBits+uint32(i)*uint32(b.Stride), b, int(i))
			if err != nil {
				return d, 0, err
			}
			t.Records = append(t.Records, record)
		}
		d.Tables = append(d.Tables, t)
	}
	all := before[:len(before)-len(r.rest)]
	covered := append(append([]pair{}, all[:len(head)]...), all[len(head)+1:]...)
	if got := checksum(covered); got != sum {
		return d, 0, &DamageError{0, fmt.Sprintf("port %d has the checksum 0x%08x, and its dwords make 0x%08x: some were changed", n, sum, got)}
	}
	return d, field(3), nil
}
