package ibdiag

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Names are names of nodes, by their GUIDs, in place of the descriptions that the nodes have.
type Names map[uint64]string

// readNames reads a file with lines of a GUID and a name in quotes. What stands behind # is a comment. The error names the line.
func readNames(file string) (Names, error) {
	f, err := os.Open(file)
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
		return 0, "", fmt.Errorf(`%q is no name; allowed: a GUID such as 0x2c9000100d051, and a name in double quotes`, line)
	}
	return guid, rest[1 : end+1], nil
}

// Of is the name of a node: that of the map, or its description with what cannot be printed as spaces.
func (n Names) Of(guid uint64, description string) string {
	if name, ok := n[guid]; ok {
		return name
	}
	return Printable(description)
}

// Printable is a description with what cannot be printed as spaces, so that no node writes to a terminal what it likes.
func Printable(text string) string {
	b := []byte(text)
	if len(b) > 63 {
		b = b[:63] // what infiniband-diags shows of 64
	}
	for i, c := range b {
		if c < 0x20 || c > 0x7e {
			b[i] = ' '
		}
	}
	return string(b)
}
