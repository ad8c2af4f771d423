package opensm

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/softvpi/softvpi/internal/subnet"
	"github.com/softvpi/softvpi/wire/ib"
)

const (
	defaultCache      = "/var/cache/opensm"
	defaultPartitions = "/etc/opensm/partitions.conf"
)

// cacheFile is where LIDs are kept from run to run: OSM_CACHE_DIR, as opensm(8) has it.
func cacheFile() string {
	dir := os.Getenv("OSM_CACHE_DIR")
	if dir == "" {
		dir = defaultCache
	}
	return filepath.Join(dir, "guid2lid")
}

// readLIDs reads OpenSM's guid2lid: port GUID, first and last LID a line. A line that is none of that is an error, which
// names it; a file that is not there is empty.
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
	f, err := os.Open(name)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readLIDs(f)
}

// saveLIDs writes the file anew and puts it in place whole.
func saveLIDs(name string, lids map[uint64]subnet.LIDRange) error {
	f, err := os.CreateTemp(filepath.Dir(name), "guid2lid-*")
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	guids := make([]uint64, 0, len(lids))
	for g := range lids {
		guids = append(guids, g)
	}
	slices.Sort(guids)
	for _, g := range guids {
		fmt.Fprintf(w, "0x%016x 0x%04x 0x%04x\n\n", g, uint16(lids[g].First), uint16(lids[g].Last))
	}
	err = w.Flush()
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}

// loadPartitions reads the partition configuration. Without -P it may be missing.
func loadPartitions(name string) (*subnet.Partitions, error) {
	given := name != ""
	if !given {
		name = defaultPartitions
	}
	b, err := os.ReadFile(name)
	if err != nil {
		if !given {
			return nil, nil
		}
		return nil, err
	}
	p, err := subnet.ParsePartitions(string(b))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return p, nil
}

// loadRoots reads GUIDs, one a line.
func loadRoots(name string) ([]uint64, error) {
	if name == "" {
		return nil, nil
	}
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var guids []uint64
	for i, l := range strings.Split(string(b), "\n") {
		if l, _, _ = strings.Cut(l, "#"); strings.TrimSpace(l) == "" {
			continue
		}
		g, err := hexadecimal(strings.TrimSpace(l))
		if err != nil {
			return nil, fmt.Errorf("%s line %d: %w", name, i+1, err)
		}
		guids = append(guids, g)
	}
	return guids, nil
}
