package dump

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/softvpi/softvpi/internal/os/wholefile"
)

// File is a file of a dump.
type File struct {
	// Type is "crspace", "eq_dump", "eq_print" or "fwtrace", Index the number among files of that type.
	Type  string
	Index int
	Text  []byte
	// Binary says that it is no text.
	Binary bool
}

// Name returns the file's name in a folder of its own.
func (f File) Name() string {
	extension := "log"
	if f.Binary {
		extension = "bin"
	}
	return fmt.Sprintf("%s_%d.%s", f.Type, f.Index, extension)
}

// Set describes a set of state dump files. Their names are
// <mode>_<location>_<tag><number>_<event>_<type>_<index>.log.
type Set struct {
	Mode     string // mode of the driver: "SingleFunc"
	Location string // of the card: "4_0_0"
	Tag      string // one letter for the event
	Event    string // "eth-down-1"
	// Keep is how many sets are kept for the tag, 1 to 1000; a further one replaces the oldest.
	Keep int
}

// maxSets is how many sets three digits can number.
const maxSets = 1000

// Write writes a set and returns its number with the paths of its files.
func (s Set) Write(directory string, files []File) (number int, paths []string, err error) {
	if err := os.MkdirAll(directory, 0o700); err != nil {
		return 0, nil, err
	}
	number, old, err := s.place(directory)
	if err != nil {
		return 0, nil, err
	}
	for _, path := range old {
		if err := os.Remove(path); err != nil {
			return 0, nil, err
		}
	}
	for _, f := range files {
		name := fmt.Sprintf("%s%03d_%s_%s", s.prefix(), number, s.Event, f.Name())
		path := filepath.Join(directory, name)
		if err := wholefile.Write(path, f.Text); err != nil {
			return number, paths, err
		}
		paths = append(paths, path)
	}
	return number, paths, nil
}

func (s Set) prefix() string { return s.Mode + "_" + s.Location + "_" + s.Tag }

// place returns the number of the next set, and the files to remove for it.
func (s Set) place(directory string) (number int, old []string, err error) {
	entries, err := os.ReadDir(directory)
	if err != nil {
		return 0, nil, err
	}
	type set struct {
		paths  []string
		newest time.Time
	}
	keep := min(max(s.Keep, 1), maxSets)
	sets := map[int]*set{}
	for _, e := range entries {
		n, ok := s.number(e.Name())
		if !ok {
			continue
		}
		path := filepath.Join(directory, e.Name())
		if n >= keep {
			old = append(old, path) // fewer are kept than before
			continue
		}
		if sets[n] == nil {
			sets[n] = &set{}
		}
		sets[n].paths = append(sets[n].paths, path)
		if info, err := e.Info(); err == nil && info.ModTime().After(sets[n].newest) {
			sets[n].newest = info.ModTime()
		}
	}
	for n := range keep {
		if sets[n] == nil {
			return n, old, nil
		}
		if sets[n].newest.Before(sets[number].newest) {
			number = n
		}
	}
	return number, append(old, sets[number].paths...), nil
}

// number returns the number of the set that a file belongs to.
func (s Set) number(name string) (int, bool) {
	rest, ok := strings.CutPrefix(name, s.prefix())
	if !ok || len(rest) < 4 || rest[3] != '_' || !strings.HasSuffix(rest, ".log") {
		return 0, false
	}
	n, err := strconv.ParseUint(rest[:3], 10, 16)
	return int(n), err == nil
}
