package opensm

import (
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/softvpi/softvpi/internal/subnet"
)

const defaultLog = "/var/log/opensm.log"

// journal is the log, in OpenSM's format: date, microseconds, process, bits, text.
type journal struct {
	name    string
	prefix  string // of lines
	file    io.Writer
	flags   uint8
	limit   int64
	written int64
	now     func() time.Time
	reopen  atomic.Bool // the file is to be reopened by its name
}

// openJournal opens the log. The name stdout means the standard output.
func openJournal(o *options, stdout io.Writer) (*journal, error) {
	j := &journal{name: o.logFile, prefix: o.prefix, flags: o.flags, limit: int64(o.logLimit) << 20, now: time.Now}
	if j.name == "" {
		j.name = defaultLog
	}
	if j.name == "stdout" {
		j.file = stdout
		return j, nil
	}
	return j, j.open(o.erase)
}

func (j *journal) open(erase bool) error {
	mode := os.O_CREATE | os.O_WRONLY | os.O_APPEND
	if erase {
		mode |= os.O_TRUNC
	}
	f, err := os.OpenFile(j.name, mode, 0o644)
	if err != nil {
		return fmt.Errorf("log file (-f): %w", err)
	}
	if i, err := f.Stat(); err == nil {
		j.written = i.Size()
	}
	j.close() // the previous one
	j.file = f
	return nil
}

func (j *journal) close() {
	if f, ok := j.file.(*os.File); ok && j.name != "stdout" {
		f.Close()
	}
}

// bits returns the log flags of a kind of event.
func bits(k subnet.EventKind) uint8 {
	switch k {
	case subnet.EventProblem, subnet.EventRefused:
		return logError
	case subnet.EventRouted:
		return logRouting | logVerbose
	case subnet.EventLIDs:
		return logVerbose
	case subnet.EventUp, subnet.EventState:
		return logSystem | logInfo
	}
	return logInfo
}

func (j *journal) write(under uint8, text string) {
	if j.flags&under == 0 {
		return
	}
	if j.name != "stdout" && j.reopen.Swap(false) {
		_ = j.open(false) // on failure the old one stays in use
	}
	t := j.now()
	n, _ := fmt.Fprintf(j.file, "%s %06d [%d] 0x%02x -> %s%s\n", t.Format("Jan 02 15:04:05"), t.Nanosecond()/1000, os.Getpid(), under,
		j.prefix, text)
	if j.written += int64(n); j.limit > 0 && j.written >= j.limit {
		if f, ok := j.file.(*os.File); ok && j.name != "stdout" && f.Truncate(0) == nil {
			j.written = 0
		}
	}
}
