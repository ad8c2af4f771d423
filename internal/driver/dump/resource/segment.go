package resource

import (
	"fmt"
	"strings"

	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/driver/dump/register"
)

// The types of segments that are no objects.
const (
	notice    = 0xfff9
	called    = 0xfffa // what was asked for
	terminate = 0xfffb
	reference = 0xfffd
	info      = 0xfffe
	Menu      = 0xffff // the segments that there are
)

// Monitoring is the segment of counters of virtual functions (WinOF-2 24.4, VF Monitoring).
const Monitoring = 0x5000

// The special numbers of objects.
const (
	All    = 0xffff // whatever Index1 is
	Active = 0xfffe // from Index1 on
)

// Segment is a kind of object that can be dumped by number.
type Segment struct {
	Type  uint16
	Name  string
	Index string // what its number is called
	block *register.Block
	// number returns that of a record at a place in its table, and refers lists what the object refers to.
	number func(at int, v values) uint32
	refers func(v values) []wanted
}

// wanted are the objects of a segment whose field has a value and which, if pid is not 0, are of that process.
type wanted struct {
	segment uint16
	field   string
	value   uint64
	pid     uint64
}

// values are the fields of a record.
type values []register.Value

func (v values) of(name string) uint64 {
	for i := range v {
		if v[i].Name == name {
			return v[i].Number()
		}
	}
	panic("no field " + name)
}

func byField(name string) func(int, values) uint32 {
	return func(_ int, v values) uint32 { return uint32(v.of(name)) }
}

// keyBits are the lower bits of a memory key, which its owner chooses; the upper ones are the number of the region.
const keyBits = 8

// Segments are those that there are, by type. A card has them in its menu, with the same names; the number of PRM_QUERY_MKEY is its
// firmware's, and chosen here.
var Segments = []*Segment{
	{Type: 0x21, Name: "PRM_QUERY_MKEY", Index: "MKEY", block: register.BlockOf("MR"),
		number: func(_ int, v values) uint32 { return uint32(v.of("key") >> keyBits) }},
	{Type: 0x1000, Name: "FULL_QPC", Index: "QPN", block: register.BlockOf("QP"), number: byField("number"), refers: ofQueuePair},
	{Type: 0x1100, Name: "FULL_SRQC", Index: "SRQN", block: register.BlockOf("SRQ"), number: byField("handle"), refers: events},
	{Type: 0x1200, Name: "FULL_CQC", Index: "CQN", block: register.BlockOf("CQ"), number: byField("number"), refers: events},
	{Type: 0x1300, Name: "FULL_EQC", Index: "EQN", block: register.BlockOf("EQ"), number: func(at int, _ values) uint32 { return uint32(at) }},
}

// SegmentOf returns the segment of a type, or nil.
func SegmentOf(t uint16) *Segment {
	for _, s := range Segments {
		if s.Type == t {
			return s
		}
	}
	return nil
}

// allowedSegments lists what may be asked for.
func allowedSegments() string {
	var list []string
	for _, s := range Segments {
		list = append(list, fmt.Sprintf("0x%x (%s)", s.Type, s.Name))
	}
	return strings.Join(append(list, fmt.Sprintf("0x%x (the list of segments)", Menu)), ", ")
}

func ofQueuePair(v values) (list []wanted) {
	for _, name := range []string{"send_cq", "recv_cq"} {
		if n := v.of(name); n != uint64(device.NoQueue) {
			list = append(list, wanted{segment: 0x1200, field: "number", value: n})
		}
	}
	if n := v.of("srq"); n != 0 { // handles of two programs may be equal
		list = append(list, wanted{segment: 0x1100, field: "handle", value: n, pid: v.of("pid")})
	}
	return list
}

// events returns the event queue of an object's program.
func events(v values) []wanted { return []wanted{{segment: 0x1300, field: "pid", value: v.of("pid")}} }
