// Package setup installs the program below a directory such as ~/.local or /usr/local, upgrades it there and removes it, so that it can
// be ended at any moment, also by SIGKILL or a power failure: the next run finds a journal, and either completes what was decided or
// clears away what was not.
//
// What is to be installed is written into a directory for work first. Then the plan is written, in one piece: before it is there nothing
// has changed outside of that directory, and from then on every step is one that can be repeated.
package setup

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/softvpi/softvpi/internal/os/wholefile"
)

// Where the journal is, below the prefix. The directory for work is at the top, so that none has to be made for it.
const (
	manifestFile = "lib/softvpi/setup.json"
	workDir      = ".softvpi-setup"
	planFile     = workDir + "/plan.json"
)

// Item is one thing to be installed.
type Item struct {
	Path    string      // below the prefix, with slashes
	Content []byte      // of a file, if Source is empty
	Source  string      // file that is copied
	Link    string      // what a link points to; Content and Source are empty then
	Mode    fs.FileMode // of a file
}

// Move sets a file aside, such as a configuration that is not to be used any more. Both are absolute paths.
type Move struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// Entry is something that is installed.
type Entry struct {
	Path string `json:"path"`
	Hash string `json:"sha256,omitempty"`
	Link string `json:"link,omitempty"`
}

// Manifest says what is installed.
type Manifest struct {
	Version     string   `json:"version"`
	Entries     []Entry  `json:"entries"`
	Directories []string `json:"directories"` // that were made for it, parents first
}

// plan is what was decided.
type plan struct {
	Manifest Manifest `json:"manifest"` // as it will be; nothing is installed if it has no entries
	Moves    []Move   `json:"moves,omitempty"`
	Delete   []string `json:"delete,omitempty"`  // paths of the manifest before that are not in this one
	Purge    []string `json:"purge,omitempty"`   // absolute paths that are removed, too
	Unmake   []string `json:"unmake,omitempty"`  // directories of the manifest before, removed if they are empty, children first
	Version  int      `json:"journal,omitempty"` // of this format
}

const journalVersion = 1

// ForeignError says that something else is where a file is to be.
type ForeignError struct{ Path string }

// Error implements error.
func (e *ForeignError) Error() string {
	return e.Path + " exists and was not installed by setup; allowed: nothing, a link to softvpi, or what setup has installed"
}

// Outcome is what Recover found.
type Outcome string

// What became of a run that was ended.
const (
	Nothing    Outcome = ""
	RolledBack Outcome = "rolled back"
	Completed  Outcome = "completed"
)

// Target is a prefix that is locked by this process.
type Target struct {
	prefix string
	lock   *os.File
	// Step is told before each step; nil: nobody is. Tests end the process there.
	Step func(name string)
}

// Open locks a prefix, which is made if it does not exist.
func Open(prefix string) (*Target, error) {
	if err := os.MkdirAll(prefix, 0o755); err != nil {
		return nil, err
	}
	f, err := os.Open(prefix)
	if err != nil {
		return nil, err
	}
	if err := lockFile(f); err != nil {
		f.Close()
		return nil, fmt.Errorf("%s: %w", prefix, err)
	}
	return &Target{prefix: prefix, lock: f}, nil
}

// Close unlocks the prefix.
func (t *Target) Close() error { return t.lock.Close() }

func (t *Target) at(p string) string { return filepath.Join(t.prefix, filepath.FromSlash(p)) }

func (t *Target) step(format string, args ...any) {
	if t.Step != nil {
		t.Step(fmt.Sprintf(format, args...))
	}
}

// Installed returns what is installed; nil if nothing is.
func (t *Target) Installed() (*Manifest, error) {
	var m Manifest
	return readJSON(t.at(manifestFile), &m)
}

// Unfinished reports whether a run was ended before it was done.
func (t *Target) Unfinished() bool {
	_, err := os.Lstat(t.at(workDir))
	return err == nil
}

func readJSON[T any](name string, to *T) (*T, error) {
	b, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(b, to); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return to, nil
}

func writeJSON(name string, from any) error {
	b, err := json.MarshalIndent(from, "", "  ")
	if err != nil {
		return err
	}
	return wholefile.Write(name, append(b, '\n'))
}

// Recover ends what a run before began. Install and Remove want it to have been called.
func (t *Target) Recover() (Outcome, error) {
	var p plan
	found, err := readJSON(t.at(planFile), &p)
	if err != nil {
		return Nothing, err
	}
	if found != nil {
		if p.Version != journalVersion {
			return Nothing, fmt.Errorf("%s has version %d; allowed: %d, so use the version of softvpi that began it", t.at(planFile), p.Version,
				journalVersion)
		}
		return Completed, t.apply(&p)
	}
	_, err = os.Lstat(t.at(workDir))
	if errors.Is(err, fs.ErrNotExist) {
		return Nothing, nil
	}
	if err != nil {
		return Nothing, err
	}
	return RolledBack, t.clear()
}

// Install installs the items in place of what is installed, with directories as needed, and sets files aside.
func (t *Target) Install(version string, items []Item, moves []Move) (*Manifest, error) {
	before, err := t.Installed()
	if err != nil {
		return nil, err
	}
	if before == nil {
		before = &Manifest{}
	}
	p := &plan{Version: journalVersion, Moves: moves, Manifest: Manifest{Version: version, Directories: before.Directories}}
	for _, i := range items {
		if err := t.free(i.Path, before); err != nil {
			return nil, err
		}
		p.Manifest.Directories = t.missing(path.Dir(i.Path), p.Manifest.Directories)
	}
	p.Manifest.Directories = t.missing(path.Dir(manifestFile), p.Manifest.Directories)
	if err := t.stage(items, p); err != nil {
		return nil, errors.Join(err, t.clear())
	}
	kept := map[string]bool{}
	for _, e := range p.Manifest.Entries {
		kept[e.Path] = true
	}
	for _, e := range before.Entries {
		if !kept[e.Path] {
			p.Delete = append(p.Delete, e.Path)
		}
	}
	return &p.Manifest, t.decide(p)
}

// Remove removes what is installed, and what purge names by absolute paths: files, and directories that are empty then. It reports
// whether something was installed.
func (t *Target) Remove(purge []string) (bool, error) {
	before, err := t.Installed()
	if err != nil {
		return false, err
	}
	if before == nil {
		before = &Manifest{}
	}
	p := &plan{Version: journalVersion, Purge: purge, Unmake: slices.Clone(before.Directories)}
	slices.Reverse(p.Unmake)
	for _, e := range before.Entries {
		p.Delete = append(p.Delete, e.Path)
	}
	if len(p.Delete)+len(purge) == 0 {
		return false, nil
	}
	if err := os.MkdirAll(t.at(workDir), 0o755); err != nil {
		return false, err
	}
	return len(before.Entries) > 0, t.decide(p)
}

// free returns why there is no place for a path.
func (t *Target) free(p string, before *Manifest) error {
	if slices.ContainsFunc(before.Entries, func(e Entry) bool { return e.Path == p }) {
		return nil
	}
	info, err := os.Lstat(t.at(p))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		if to, err := os.Readlink(t.at(p)); err == nil && filepath.Base(to) == "softvpi" {
			return nil // one that softvpi tools install has made
		}
	}
	return &ForeignError{t.at(p)}
}

// missing returns the directories that have to be made, parents first, with those before it.
func (t *Target) missing(dir string, list []string) []string {
	if dir == "." || slices.Contains(list, dir) {
		return list
	}
	if info, err := os.Stat(t.at(dir)); err == nil && info.IsDir() {
		return list
	}
	return append(t.missing(path.Dir(dir), list), dir)
}

func (t *Target) staged(i int) string { return t.at(workDir + "/" + strconv.Itoa(i)) }

// stage writes the items into the directory for work, and their entries into the plan.
func (t *Target) stage(items []Item, p *plan) error {
	t.step("begin")
	if err := os.MkdirAll(t.at(workDir), 0o755); err != nil {
		return err
	}
	for i, x := range items {
		t.step("write %s", x.Path)
		e := Entry{Path: x.Path, Link: x.Link}
		var err error
		if x.Link != "" {
			err = os.Symlink(filepath.FromSlash(x.Link), t.staged(i))
		} else {
			e.Hash, err = writeFile(t.staged(i), &x)
		}
		if err != nil {
			return err
		}
		p.Manifest.Entries = append(p.Manifest.Entries, e)
	}
	return wholefile.SyncDirectory(t.at(workDir))
}

// writeFile writes a file to the disk, and returns its hash.
func writeFile(name string, x *Item) (string, error) {
	content := x.Content
	if x.Source != "" {
		var err error
		if content, err = os.ReadFile(x.Source); err != nil {
			return "", err
		}
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", err
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Chmod(x.Mode)
	}
	if err == nil {
		err = f.Sync()
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:]), errors.Join(err, f.Close())
}

// decide writes the plan, and carries it out.
func (t *Target) decide(p *plan) error {
	t.step("decide")
	if err := writeJSON(t.at(planFile), p); err != nil {
		return err
	}
	return t.apply(p)
}
