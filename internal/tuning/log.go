package tuning

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/softvpi/softvpi/internal/os/inputfile"
	"github.com/softvpi/softvpi/internal/os/wholefile"
)

// Entry is a change in the log.
type Entry struct {
	Time     time.Time `json:"time"`
	Scenario string    `json:"scenario"`
	Changes  []Change  `json:"changes"`
}

// Adapters returns the names of the adapters concerned.
func (e *Entry) Adapters() (names []string) {
	for _, c := range e.Changes {
		if !slices.Contains(names, c.Adapter) {
			names = append(names, c.Adapter)
		}
	}
	return names
}

// before returns the previous values of an adapter's changed keys.
func (e *Entry) before(adapter string) (list []assignment) {
	for _, c := range e.Changes {
		if c.Adapter == adapter {
			list = append(list, assignment{c.Key, c.Before})
		}
	}
	slices.SortFunc(list, func(x, y assignment) int { return strings.Compare(x.key, y.key) })
	return list
}

// Last returns the last change of an adapter that can be undone; false: there is none.
func Last(log []Entry, adapter string) (last Entry, ok bool) {
	undone := 0
	for _, e := range slices.Backward(log) {
		switch {
		case !slices.Contains(e.Adapters(), adapter):
		case e.Scenario == Undo:
			undone++
		case undone > 0:
			undone--
		default:
			return e, true
		}
	}
	return last, false
}

const (
	maxLine = 1 << 20 // bytes of a line
	maxLog  = 4 << 20 // bytes of the file, beyond which the older half is dropped
	maxKept = 256     // entries kept if there is no file
)

// Log holds the changes that were made, the oldest first, in a file with one line of JSON each.
type Log struct {
	file string

	mu     sync.Mutex
	memory []Entry // if there is no file
}

// NewLog returns a log in a file, which is created with its directory at the first record; empty: in
// memory.
func NewLog(file string) *Log { return &Log{file: file} }

// File returns the file of the log; empty: in memory.
func (l *Log) File() string { return l.file }

// Record adds an entry, and returns when it is on disk.
func (l *Log) Record(e Entry) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == "" {
		l.memory = append(l.memory, e)
		l.memory = l.memory[max(0, len(l.memory)-maxKept):]
		return nil
	}
	if err := l.write(e); err != nil {
		return fmt.Errorf("log: %w", err)
	}
	return nil
}

func (l *Log) write(e Entry) error {
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(l.file), 0o700); err != nil {
		return err
	}
	if err := l.halve(); err != nil {
		return err
	}
	f, err := os.OpenFile(l.file, os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	if unfinished(f) {
		line = append([]byte{'\n'}, line...)
	}
	_, err = f.Write(append(line, '\n'))
	return errors.Join(err, f.Sync(), f.Close())
}

// unfinished reports whether the last line is incomplete: the disk was full, or the power failed.
func unfinished(f *os.File) bool {
	var last [1]byte
	s, err := f.Stat()
	if err != nil || s.Size() == 0 {
		return false
	}
	_, err = f.ReadAt(last[:], s.Size()-1)
	return err == nil && last[0] != '\n'
}

// halve drops the older half of a file that has grown too large.
func (l *Log) halve() error {
	s, err := os.Stat(l.file)
	if err != nil || s.Size() < maxLog {
		return nil // a missing file is created, and an unreadable one reports its error then
	}
	text, err := inputfile.Read(l.file, inputfile.Text)
	if err != nil {
		return err
	}
	text = text[len(text)/2:]
	text = text[bytes.IndexByte(text, '\n')+1:]
	return wholefile.Write(l.file, text)
}

// Entries reads the log, the oldest entry first. Invalid lines are skipped.
func (l *Log) Entries() (all []Entry, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == "" {
		return slices.Clone(l.memory), nil
	}
	f, err := inputfile.Open(l.file, inputfile.Text)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("log: %w", err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		var e Entry
		if json.Unmarshal(lines.Bytes(), &e) == nil && len(e.Changes) > 0 {
			all = append(all, e)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("log: %w", err)
	}
	return all, nil
}
