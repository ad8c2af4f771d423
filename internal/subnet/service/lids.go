package service

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/softvpi/softvpi/internal/os/inputfile"
	"github.com/softvpi/softvpi/internal/os/wholefile"
	"github.com/softvpi/softvpi/internal/subnet"
	"github.com/softvpi/softvpi/wire/ib"
)

// readLIDs reads OpenSM's guid2lid: per line a port GUID, first and last LID. The error says which line is
// invalid; a file that does not exist counts as empty.
func readLIDs(r io.Reader) (map[uint64]subnet.LIDRange, error) {
	lids := map[uint64]subnet.LIDRange{}
	s := bufio.NewScanner(r)
	for n := 1; s.Scan(); n++ {
		f := strings.Fields(s.Text())
		if len(f) == 0 || strings.HasPrefix(f[0], "#") {
			continue
		}
		if len(f) != 3 {
			return nil, fmt.Errorf("guid2lid line %d: want a GUID and two LIDs", n)
		}
		guid, err := strconv.ParseUint(f[0], 0, 64)
		first, err1 := strconv.ParseUint(f[1], 0, 16)
		last, err2 := strconv.ParseUint(f[2], 0, 16)
		if err != nil || err1 != nil || err2 != nil || guid == 0 || first == 0 || last < first || last > uint64(ib.LIDMaxUnicast) {
			return nil, fmt.Errorf("guid2lid line %d: want a GUID and two LIDs from 0x1 to 0xbfff", n)
		}
		lids[guid] = subnet.LIDRange{First: ib.LID(first), Last: ib.LID(last)}
	}
	return lids, s.Err()
}

func loadLIDs(name string) (map[uint64]subnet.LIDRange, error) {
	f, err := inputfile.Open(name, inputfile.Text)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readLIDs(f)
}

// saveLIDs rewrites the file.
func saveLIDs(name string, lids map[uint64]subnet.LIDRange) error {
	var b []byte
	for _, g := range slices.Sorted(maps.Keys(lids)) {
		b = fmt.Appendf(b, "0x%016x 0x%04x 0x%04x\n\n", g, uint16(lids[g].First), uint16(lids[g].Last))
	}
	return wholefile.Write(name, b)
}
