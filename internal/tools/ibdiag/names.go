package ibdiag

import (
	"bufio"
	"fmt"
	"strconv"
	"strings"

	"github.com/softvpi/softvpi/internal/os/inputfile"
)

// Names maps node GUIDs to names that replace the nodes' descriptions.
type Names map[uint64]string

// readNames reads a file whose lines hold a GUID and a quoted name, with comments after #. The error says
// which line is wrong.
func readNames(file string) (Names, error) {
	f, err := inputfile.Open(file, inputfile.Text)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names := Names{}
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		guid, name, err := nameLine(line)
		if err != nil {
			return nil, fmt.Errorf("%s, line %d: %w", file, n, err)
		}
		names[guid] = name
	}
	return names, lines.Err()
}

func nameLine(line string) (uint64, string, error) {
	word, rest, _ := strings.Cut(line, " ")
	if i := strings.IndexByte(word, '\t'); i >= 0 {
		word, rest = word[:i], word[i:]+" "+rest
	}
	guid, err := strconv.ParseUint(word, 0, 64)
	rest = strings.TrimSpace(rest)
	end := -1
	if strings.HasPrefix(rest, `"`) {
		end = strings.IndexByte(rest[1:], '"')
	}
	if err != nil || end < 0 {
		return 0, "", fmt.Errorf(`%q is not a name; allowed: a GUID such as 0x2c9000100d051, and a name in double quotes`, line)
	}
	return guid, rest[1 : end+1], nil
}

// Of returns the name of a node: the one in the map, or else its printable description.
func (n Names) Of(guid uint64, description string) string {
	if name, ok := n[guid]; ok {
		return name
	}
	return Printable(description)
}

// Printable replaces unprintable characters with spaces, so that nodes cannot send control sequences to a
// terminal.
func Printable(text string) string {
	b := []byte(text)
	if len(b) > 63 {
		b = b[:63] // infiniband-diags shows 63 of 64 bytes
	}
	for i, c := range b {
		if c < 0x20 || c > 0x7e {
			b[i] = ' '
		}
	}
	return string(b)
}
