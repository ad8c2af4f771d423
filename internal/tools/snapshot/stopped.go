package snapshot

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/events"
	"github.com/softvpi/softvpi/internal/os/inputfile"
	"github.com/softvpi/softvpi/internal/registry"
)

// maxCopied limits how many bytes of the state directory are read.
const maxCopied = 1 << 30

// stopped reports about what a driver left on disk. It reads copies, because opening the originals would
// repair them, and keep a driver from starting meanwhile.
func (r *report) stopped(state string, cause error) {
	d := r.section("Driver", "Property", "Value")
	d.Note = cause.Error() + ". What follows is from the disk: nothing is in force."
	d.add("State directory", state)
	work, err := os.MkdirTemp("", "snapshot-")
	if err != nil {
		d.Note += " " + err.Error()
		return
	}
	defer os.RemoveAll(work)
	if err := r.storedRegistry(state, work); err != nil {
		r.section("Registry").Note = err.Error()
	}
	r.storedEvents(filepath.Join(state, "events"), filepath.Join(work, "events"))
}

func (r *report) storedRegistry(state, work string) error {
	err := duplicate(filepath.Join(state, registry.FileName), filepath.Join(work, registry.FileName))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no registry in %s", state)
	}
	if err != nil {
		return err
	}
	reg, err := registry.Open(work)
	if err != nil {
		return err
	}
	defer reg.Close()
	if _, cause := reg.SetAside(); cause != nil {
		return fmt.Errorf("%s is unreadable: %w", filepath.Join(state, registry.FileName), cause)
	}
	for _, a := range reg.Adapters() {
		t := r.section("Registry of "+a.Name, keyFields...)
		for _, s := range reg.Settings(a) {
			stored, problem := "", ""
			if v, ok := reg.Get(s.Path, s.Name); ok {
				stored = v.Show()
			}
			if s.Problem != nil {
				problem = s.Problem.Error()
			}
			t.add(s.Path.String()+`\`+s.Name, "-", stored, api.DefaultText(s.Key, a.Generation), "-", api.EffectName(s.Key),
				api.StatusName(s.Key), problem)
		}
		r.storedConfiguration(reg, a)
	}
	return nil
}

func (r *report) storedConfiguration(reg *registry.Registry, a registry.Adapter) {
	t := r.section("Device configuration of "+a.Name, "Parameter", "Current", "New", "Default", "Status")
	x := api.AdapterStatus{Generation: api.GenerationName(a.Generation), Number: a.Number}
	for _, p := range x.Parameters(reg) {
		t.add(p.Name, "-", orNotSet(p.New), p.Default, p.Status)
	}
}

func (r *report) storedEvents(from, to string) {
	files, err := os.ReadDir(from)
	if err == nil {
		err = os.Mkdir(to, 0o700)
	}
	for _, f := range files {
		if err == nil && f.Type().IsRegular() && strings.HasSuffix(f.Name(), ".events") {
			err = duplicate(filepath.Join(from, f.Name()), filepath.Join(to, f.Name()))
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("there is no event log in %s", from)
	}
	if err != nil {
		r.events(events.Page{}, err)
		return
	}
	log := events.Open(events.Config{Directory: to})
	page, err := log.Query(events.Query{Limit: eventsShown})
	r.events(page, errors.Join(err, log.Close()))
}

// duplicate copies a file.
func duplicate(from, to string) error {
	in, err := inputfile.Open(from, maxCopied)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
