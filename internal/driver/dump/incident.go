package dump

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Incident is a dump-me-now. Its folder is dmn-<device>-<type>-<source>-<reason>--<time>.
type Incident struct {
	Device string
	Type   string // "GENERAL"
	Source Source
	Reason string // "": NA
	Time   time.Time
	// Total is how many folders are kept; the first Preserved of them are never removed to make room.
	Total, Preserved int
}

// Source is who requests a dump-me-now.
type Source string

// The sources (WinOF 5.50, 4.7.1 and 4.7.2).
const (
	User        Source = "USER"
	SelfHealing Source = "SH"
	Death       Source = "CRASH" // of the driver before; not the manual's
	Panic       Source = "PANIC" // of a request to the management interface; likewise
)

// errFull says that there is no room for a dump.
var errFull = errors.New("all dumps that may be kept are preserved")

// errOff says that dumps are not kept.
var errOff = errors.New("DumpMeNowTotalCount is 0: no dumps are kept")

// incidentTime is the format of the time in a folder's name (WinOF 5.50, 4.7.2): 4.13.2017-07.49.02.747.
const incidentTime = "1.2.2006-15.04.05.000"

// Write writes a dump to a folder of its own below root, completely or not at all, and removes the oldest
// folder if there are too many.
func (i Incident) Write(root string, files []File) (folder string, err error) {
	if i.Total <= 0 {
		return "", errOff
	}
	if err := os.MkdirAll(root, 0o700); err != nil {
		return "", err
	}
	there, err := incidents(root)
	if err != nil {
		return "", err
	}
	if len(there) >= i.Total {
		if i.Preserved >= i.Total {
			return "", errFull
		}
		for _, old := range there[i.Preserved : i.Preserved+len(there)-i.Total+1] {
			if err := os.RemoveAll(filepath.Join(root, old)); err != nil {
				return "", err
			}
		}
	}
	temporary, err := os.MkdirTemp(root, ".dmn-*")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(temporary) // if something failed
	for _, f := range files {
		if err := os.WriteFile(filepath.Join(temporary, f.Name()), f.Text, 0o600); err != nil {
			return "", err
		}
	}
	for ; ; i.Time = i.Time.Add(time.Millisecond) { // if two are within one millisecond
		folder = filepath.Join(root, i.name())
		if _, err := os.Lstat(folder); errors.Is(err, os.ErrNotExist) {
			return folder, os.Rename(temporary, folder)
		} else if err != nil {
			return "", err
		}
	}
}

func (i Incident) name() string {
	return fmt.Sprintf("dmn-%s-%s-%s-%s--%s", part(i.Device), part(i.Type), part(string(i.Source)), part(i.Reason), i.Time.Format(incidentTime))
}

// part makes text usable between the dashes of a folder's name.
func part(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r == ' ' || r == '-':
			return '_'
		case r < ' ' || strings.ContainsRune(`/\:*?"<>|`, r):
			return -1
		}
		return r
	}, s)
	if s == "" {
		return "NA"
	}
	return s
}

// incidents returns the folders in root that are dumps, the oldest first.
func incidents(root string) ([]string, error) {
	entries, err := os.ReadDir(root)
	if err != nil {
		return nil, err
	}
	times := map[string]time.Time{}
	var names []string
	for _, e := range entries {
		name, ok := strings.CutPrefix(e.Name(), "dmn-")
		i := strings.LastIndex(name, "--")
		if !ok || i < 0 || !e.IsDir() {
			continue
		}
		at, err := time.Parse(incidentTime, name[i+2:])
		if err != nil {
			continue
		}
		times[e.Name()] = at
		names = append(names, e.Name())
	}
	slices.SortFunc(names, func(a, b string) int { return times[a].Compare(times[b]) })
	return names, nil
}
