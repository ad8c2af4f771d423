package perftuning

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// change is a key that a scenario changes.
type change struct {
	Adapter string  `json:"adapter"`
	Key     string  `json:"key"`
	Before  *string `json:"before"` // what was stored; nil: nothing
	After   *string `json:"after"`
	Status  string  `json:"status"` // built, stored only
	Effect  string  `json:"effect"` // at once, at restart
}

// entry is a run of the tool in its log.
type entry struct {
	Time     time.Time `json:"time"`
	Scenario string    `json:"scenario"`
	Changes  []change  `json:"changes"`
}

// maxLine bounds a line of the log in bytes.
const maxLine = 1 << 20

// record adds an entry to the log, and returns when it is on the disk.
func record(file string, e entry) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return fmt.Errorf("log: %w", err)
	}
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("log: %w", err)
	}
	_, err = f.Write(append(line, '\n'))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("log: %w", err)
	}
	return nil
}

// before reads from the log what each key of an adapter was before its last run about it, which was no undoing.
func before(file, adapter string) (map[string]*string, error) {
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("log %s: nothing was changed yet", file)
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, maxLine)
	var stack []map[string]*string
	for lines.Scan() {
		var e entry
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			continue // the end of a run that did not end
		}
		was := map[string]*string{}
		for _, c := range e.Changes {
			if c.Adapter == adapter {
				was[c.Key] = c.Before
			}
		}
		switch {
		case len(was) == 0:
		case e.Scenario == undoing && len(stack) > 0:
			stack = stack[:len(stack)-1]
		case e.Scenario != undoing:
			stack = append(stack, was)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("log %s: %w", file, err)
	}
	if len(stack) == 0 {
		return nil, fmt.Errorf("log %s: no change of adapter %q is left to undo", file, adapter)
	}
	return stack[len(stack)-1], nil
}
