package dump

import (
	"bytes"
	"fmt"
	"time"

	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/driver/dump/register"
)

// Detail is what a dump-me-now contains of virtual functions: DmnIovMode's values (WinOF 5.50, 4.7.4.1), each with what the one before has.
type Detail uint64

// The details.
const (
	NoFunctions     Detail  = iota
	MajorObjects            // functions and their states
	Resources               // and all queues and regions of each
	Mappings                // and which queues each queue pair has
	AllOfFunctions          // and tables, events and counters
	mostOfFunctions = 20000 // objects of a kind, of all functions together
)

// Function is a virtual function of an adapter.
type Function struct {
	Adapter string
	Number  int
	Name    string
	State   string // what of it is set, and how it is, in words
	// Inspect returns its objects, at most so many of a kind; nil: there is no device function now.
	Inspect func(most int) (device.Inspection, error)
}

// blocksOf are the tables of the register space that a detail adds.
var blocksOf = map[Detail][]string{Resources: {"QP", "CQ", "SRQ", "MR"}, AllOfFunctions: {"PORT", "GID", "PKEY", "EQ", "COUNTER"}}

// Functions returns virtual functions as text.
func Functions(at time.Time, d Detail, list []Function) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# virtual functions at %s\n", at.Format(timeForm))
	left := mostOfFunctions
	for i := range list {
		f := &list[i]
		section(&b, fmt.Sprintf("vf %d of %s", f.Number, f.Adapter))
		fmt.Fprintf(&b, "name %q %s\n", f.Name, f.State)
		if d < Resources || f.Inspect == nil {
			continue
		}
		s, err := f.Inspect(left)
		if err != nil {
			fmt.Fprintf(&b, "# its objects are not known: %v\n", err)
			continue
		}
		left -= max(len(s.QPs), len(s.CQs), len(s.SRQs), len(s.MRs))
		p := register.Port{Time: at, Inspection: &s, Counters: Counters(&s)}
		objects(&b, &p, blocksOf[Resources])
		if d >= Mappings {
			mappings(&b, &s)
		}
		if d >= AllOfFunctions {
			objects(&b, &p, blocksOf[AllOfFunctions])
		}
		leftOut(&b, &s)
	}
	return b.Bytes()
}

// objects lists records of tables, with the names of their fields.
func objects(b *bytes.Buffer, p *register.Port, names []string) {
	for _, name := range names {
		table := register.BlockOf(name)
		for _, r := range table.Records(p) {
			b.WriteString(name)
			for _, v := range table.Values(r) {
				fmt.Fprintf(b, " %s %s", v.Name, v)
			}
			b.WriteByte('\n')
		}
	}
}

// mappings lists the queues by which queue pairs are served.
func mappings(b *bytes.Buffer, s *device.Inspection) {
	for i := range s.QPs {
		q := &s.QPs[i]
		fmt.Fprintf(b, "map qp 0x%x send %s receive %s", q.Number, queueName(q.SendCQ), queueName(q.RecvCQ))
		if q.SRQ != 0 {
			fmt.Fprintf(b, " from srq 0x%x", uint32(q.SRQ))
		}
		fmt.Fprintf(b, " of program %q pid %d\n", q.Program, q.PID)
	}
}

func queueName(n uint32) string {
	if n == device.NoQueue {
		return "none"
	}
	return fmt.Sprint("cq ", n)
}
