package setup

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/softvpi/softvpi/internal/os/wholefile"
)

// apply carries out a plan, of which any part may have been done before.
func (t *Target) apply(p *plan) error {
	for _, step := range []func(*plan) error{t.makeDirectories, t.place, t.setAside, t.delete, t.record, t.unmake} {
		if err := step(p); err != nil {
			return err
		}
	}
	t.step("end")
	return t.clear()
}

func (t *Target) makeDirectories(p *plan) error {
	for _, d := range p.Manifest.Directories {
		t.step("make %s", d)
		if err := os.Mkdir(t.at(d), 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}

// place renames what was written to where it belongs: each file is the one before or the new one at every moment.
func (t *Target) place(p *plan) error {
	changed := map[string]bool{}
	for i, e := range p.Manifest.Entries {
		t.step("place %s", e.Path)
		err := os.Rename(t.staged(i), t.at(e.Path))
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // it does not exist any more if it was renamed already
			return err
		}
		changed[path.Dir(e.Path)] = true
	}
	for d := range changed {
		if err := wholefile.SyncDirectory(t.at(d)); err != nil {
			return err
		}
	}
	return nil
}

func (t *Target) setAside(p *plan) error {
	for _, m := range p.Moves {
		t.step("set aside %s", m.From)
		if _, err := os.Lstat(m.To); err == nil {
			continue // it was done: the name was free when the plan was made
		}
		if err := os.Rename(m.From, m.To); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := wholefile.SyncDirectory(filepath.Dir(m.To)); err != nil {
			return err
		}
	}
	return nil
}

func (t *Target) delete(p *plan) error {
	var all []string
	for _, d := range p.Delete {
		all = append(all, t.at(d))
	}
	for _, name := range append(all, p.Purge...) {
		t.step("delete %s", name)
		if err := removeEmpty(name); err != nil {
			return err
		}
	}
	return nil
}

// record writes what is installed now.
func (t *Target) record(p *plan) error {
	t.step("record")
	if len(p.Manifest.Entries) == 0 {
		if err := os.Remove(t.at(manifestFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	next := t.at(workDir + "/manifest.json")
	if err := writeJSON(next, p.Manifest); err != nil {
		return err
	}
	if err := os.Chmod(next, 0o644); err != nil {
		return err
	}
	if err := os.Rename(next, t.at(manifestFile)); err != nil {
		return err
	}
	return wholefile.SyncDirectory(filepath.Dir(t.at(manifestFile)))
}

// unmake removes directories, where nothing of others is in them.
func (t *Target) unmake(p *plan) error {
	for _, d := range p.Unmake {
		t.step("unmake %s", d)
		if err := removeEmpty(t.at(d)); err != nil {
			return err
		}
	}
	return nil
}

// removeEmpty removes a file, or a directory if nothing is in it. It does not mind if there is none.
func removeEmpty(name string) error {
	err := os.Remove(name)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTEMPTY) || errors.Is(err, syscall.EEXIST) {
		return nil
	}
	return err
}

// clear removes the directory for work: the plan first and at once, since the rest means nothing without it.
func (t *Target) clear() error {
	if err := os.Remove(t.at(planFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := wholefile.SyncDirectory(t.at(workDir)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	t.step("clear")
	return os.RemoveAll(t.at(workDir))
}

// Damaged returns the paths of a manifest whose files are not as they were installed.
func (t *Target) Damaged(m *Manifest) (out []string) {
	for _, e := range m.Entries {
		if !t.intact(e) {
			out = append(out, t.at(e.Path))
		}
	}
	slices.Sort(out)
	return out
}

func (t *Target) intact(e Entry) bool {
	if e.Link != "" {
		to, err := os.Readlink(t.at(e.Path))
		return err == nil && filepath.ToSlash(to) == e.Link
	}
	b, err := os.ReadFile(t.at(e.Path))
	sum := sha256.Sum256(b)
	return err == nil && hex.EncodeToString(sum[:]) == e.Hash
}
