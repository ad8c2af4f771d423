package lastwords

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"github.com/softvpi/softvpi/internal/os/ownfile"
)

// Names of the files in the state directory.
const (
	commandsFile  = "lastwords.commands"
	tracebackFile = "lastwords.traceback"
)

// mostTraceback is how many bytes of a traceback are read: goroutines have a few hundred each.
const mostTraceback = 16 << 20

// Remains are what a driver that died has left.
type Remains struct {
	Traceback []byte
	Commands  []Command
	Time      time.Time // when it wrote last
}

// killed is the cause of a death without a traceback.
const killed = "killed, without a traceback (kill -9, out of memory, or the machine)"

// Cause returns in one line why the driver died: the first line of its traceback that says something.
func (r *Remains) Cause() string {
	for line := range bytes.Lines(r.Traceback) {
		if s := strings.TrimSpace(string(line)); s != "" {
			return s[:min(len(s), 200)]
		}
	}
	return killed
}

// Reason returns the cause as one word for the name of a folder: SIGQUIT, panic, fatal error.
func (r *Remains) Reason() string {
	if len(r.Traceback) == 0 {
		return "killed"
	}
	word, _, _ := strings.Cut(r.Cause(), ":")
	if len(word) > 20 {
		return "died"
	}
	return word
}

// Recorder records the commands of a driver. The zero value records nothing. Its methods may be called at any time.
type Recorder struct {
	commands *os.File
	trace    *os.File
	caught   bool
	seq      atomic.Uint64
}

// Open begins a driver's record in a state directory, and returns what the one before has left if died says that it died; nil: nothing.
// With catch the Go runtime writes the traceback of a fatal error in this process to the record too, which only one driver of a
// process may ask for. An error means that nothing is recorded.
func Open(state string, died, catch bool) (r *Recorder, remains *Remains, err error) {
	r = &Recorder{}
	if r.commands, err = ownfile.Open(filepath.Join(state, commandsFile), os.O_RDWR|os.O_CREATE); err != nil {
		return &Recorder{}, nil, err
	}
	if r.trace, err = ownfile.Open(filepath.Join(state, tracebackFile), os.O_RDWR|os.O_CREATE); err != nil {
		r.commands.Close()
		return &Recorder{}, nil, err
	}
	if died {
		remains = left(r.commands, r.trace)
	}
	if err = r.begin(catch); err != nil {
		r.Close()
		return &Recorder{}, remains, err
	}
	return r, remains, nil
}

// begin empties the files.
func (r *Recorder) begin(catch bool) error {
	if err := errors.Join(r.commands.Truncate(0), r.trace.Truncate(0)); err != nil {
		return err
	}
	if _, err := r.commands.WriteAt(append([]byte(magic), make([]byte, headerSize-len(magic))...), 0); err != nil {
		return err
	}
	if !catch {
		return nil
	}
	Abort()
	r.caught = true
	return debug.SetCrashOutput(r.trace, debug.CrashOptions{})
}

// Abort makes a fatal error of the Go runtime end this process by SIGABRT, with the tracebacks of all goroutines. Its status would be 2
// otherwise, which is that of a wrong command line or configuration: whoever runs the driver has to tell the one from the other.
func Abort() { debug.SetTraceback("crash") }

// left reads what a driver has left.
func left(commands, trace *os.File) *Remains {
	r := &Remains{}
	b, _ := io.ReadAll(io.LimitReader(commands, headerSize+Kept*recordSize)) // what cannot be read is not there
	r.Commands = Commands(b)
	r.Traceback, _ = io.ReadAll(io.LimitReader(trace, mostTraceback))
	for _, f := range []*os.File{commands, trace} {
		if info, err := f.Stat(); err == nil && info.ModTime().After(r.Time) {
			r.Time = info.ModTime()
		}
	}
	return r
}

// Began records a command that is about to be carried out, and returns its number, for Ended.
func (r *Recorder) Began(c Command) uint64 {
	if r.commands == nil {
		return 0
	}
	seq := r.seq.Add(1)
	c.Running = true
	r.put(seq, &c)
	return seq
}

// Ended records how a command ended.
func (r *Recorder) Ended(seq uint64, c Command) {
	if seq == 0 || r.seq.Load()-seq >= Kept { // another has its place
		return
	}
	r.put(seq, &c)
}

func (r *Recorder) put(seq uint64, c *Command) {
	b := encode(seq, c)
	_, _ = r.commands.WriteAt(b[:], headerSize+int64(seq%Kept)*recordSize) // a full disk is no reason to refuse commands
}

// Close ends the record of a driver that stops: there is nothing to find.
func (r *Recorder) Close() error {
	if r == nil || r.commands == nil {
		return nil
	}
	var errs []error
	if r.caught {
		errs = append(errs, debug.SetCrashOutput(nil, debug.CrashOptions{}))
	}
	for _, f := range []*os.File{r.commands, r.trace} {
		errs = append(errs, f.Truncate(0), f.Close())
	}
	return errors.Join(errs...)
}
