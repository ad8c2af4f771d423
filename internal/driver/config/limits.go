package config

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/budget"
)

// Limits limit what attached programs make the driver hold. Zero fields follow from the others, or from the
// memory and the descriptors that the driver may have.
type Limits struct {
	Memory           Size `json:"memory,omitempty"`             // for all programs
	MemoryPerUser    Size `json:"memory_per_user,omitempty"`    // for the programs of one user
	MemoryPerProgram Size `json:"memory_per_program,omitempty"` // for one program
	// DescriptorsPerProgram limits the descriptors that are kept open for one program.
	DescriptorsPerProgram uint32 `json:"descriptors_per_program,omitempty"`
}

const (
	leastMemory      = 8 << 20 // for one program, which takes up to 6 MB by attaching
	leastDescriptors = 4       // a program with a ring, on the direct path
	mostDescriptors  = 1 << 20
)

// Size is a number of bytes. In JSON it is a number, or a text as ParseSize has it.
type Size uint64

const sizes = "bytes, or a number with KiB, MiB, GiB or TiB"

// ParseSize reads a size: a number of bytes, or of KiB, MiB, GiB or TiB.
func ParseSize(text string) (Size, bool) {
	digits := strings.TrimRight(text, "KMGTiB")
	shift, ok := map[string]uint{"": 0, "KiB": 10, "MiB": 20, "GiB": 30, "TiB": 40}[text[len(digits):]]
	n, err := strconv.ParseUint(digits, 10, 64)
	if !ok || err != nil || n > 1<<63>>shift {
		return 0, false
	}
	return Size(n << shift), true
}

func (s Size) String() string {
	for _, unit := range [...]struct {
		shift uint
		name  string
	}{{40, "TiB"}, {30, "GiB"}, {20, "MiB"}, {10, "KiB"}} {
		if s != 0 && s&(1<<unit.shift-1) == 0 {
			return fmt.Sprintf("%d%s", s>>unit.shift, unit.name)
		}
	}
	return strconv.FormatUint(uint64(s), 10)
}

// UnmarshalJSON accepts a number or a text.
func (s *Size) UnmarshalJSON(b []byte) error {
	text := string(b)
	if len(b) > 0 && b[0] == '"' {
		if err := json.Unmarshal(b, &text); err != nil {
			return err
		}
	}
	n, ok := ParseSize(text)
	if !ok {
		return api.Wrong("a size of limits", string(b[:min(len(b), 40)]), sizes)
	}
	*s = n
	return nil
}

// ParseLimits reads limits from a command line: names and values of Limits' fields, with commas between.
func ParseLimits(text string) (l Limits, err error) {
	given := map[string]bool{}
	for part := range strings.SplitSeq(text, ",") {
		name, value, ok := strings.Cut(part, "=")
		into := map[string]*Size{"memory": &l.Memory, "memory_per_user": &l.MemoryPerUser, "memory_per_program": &l.MemoryPerProgram}[name]
		switch {
		case !ok || given[name]:
			ok = false
		case into != nil:
			*into, ok = ParseSize(value)
		case name == "descriptors_per_program":
			n, err := strconv.ParseUint(value, 10, 32)
			l.DescriptorsPerProgram, ok = uint32(n), err == nil
		default:
			ok = false
		}
		if !ok {
			return l, api.Wrong("--limits", strconv.Quote(part), "memory=SIZE, memory_per_user=SIZE, memory_per_program=SIZE, "+
				"descriptors_per_program=N, each once, with commas between; a SIZE is "+sizes)
		}
		given[name] = true
	}
	return l, nil
}

// complete checks the limits.
func (l *Limits) complete() error {
	if l == nil {
		return nil
	}
	above, field := ^Size(0), ""
	for _, f := range [...]struct {
		name  string
		value Size
		least Size
	}{{"limits.memory", l.Memory, 2 * leastMemory}, {"limits.memory_per_user", l.MemoryPerUser, leastMemory},
		{"limits.memory_per_program", l.MemoryPerProgram, leastMemory}} {
		switch {
		case f.value == 0:
			continue
		case f.value < f.least:
			return api.Wrong(f.name, f.value.String(), fmt.Sprintf("at least %s", f.least))
		case f.value > above:
			return api.Wrong(f.name, f.value.String(), fmt.Sprintf("at most %s, which is %s", above, field))
		}
		above, field = f.value, f.name
	}
	if n := l.DescriptorsPerProgram; n != 0 && (n < leastDescriptors || n > mostDescriptors) {
		return api.Wrong("limits.descriptors_per_program", fmt.Sprint(n), fmt.Sprintf("%d to %d", leastDescriptors, mostDescriptors))
	}
	return nil
}

// ProgramMemory returns the limits of memory, where otherwise are those that hold for fields that are not
// given.
func (c *Config) ProgramMemory(otherwise budget.Limits) budget.Limits {
	l := c.Limits
	if l == nil {
		return otherwise
	}
	if l.Memory != 0 {
		otherwise = budget.Share(uint64(l.Memory))
	}
	if l.MemoryPerUser != 0 {
		otherwise.User = min(uint64(l.MemoryPerUser), otherwise.Total)
	}
	otherwise.Program = min(otherwise.Program, otherwise.User)
	if l.MemoryPerProgram != 0 {
		otherwise.Program = min(uint64(l.MemoryPerProgram), otherwise.Total)
		if l.MemoryPerUser == 0 {
			otherwise.User = max(otherwise.User, otherwise.Program)
		}
		otherwise.Program = min(otherwise.Program, otherwise.User)
	}
	return otherwise
}
