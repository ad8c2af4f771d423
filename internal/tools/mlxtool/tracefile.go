package mlxtool

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/softvpi/softvpi/internal/driver/tracing/words"
	"github.com/softvpi/softvpi/internal/os/wholefile"
	"github.com/softvpi/softvpi/internal/trace"
	"github.com/softvpi/softvpi/internal/trace/spool"
)

// readTrace writes what is whole in the file of a trace for Perfetto and as text, beside it. It needs no driver: it is for what one
// that was killed has left.
func (r *run) readTrace(args []string) (report, error) {
	if len(args) != 1 {
		return nil, r.usagef("%d files; read needs one, whose name ends in .trace", len(args))
	}
	base, ok := strings.CutSuffix(args[0], ".trace")
	if !ok {
		return nil, r.usagef("file is %q; allowed: names that end in .trace", args[0])
	}
	c, err := readSpool(args[0])
	if err != nil {
		return nil, r.usagef("file %s: %v", args[0], err)
	}
	t := table{Label: "Trace session", Name: c.Session, Fields: []string{"Started", "Driver", "Records", "Overwritten", "Lost", "Damaged",
		"File"}}
	for _, f := range []struct {
		suffix string
		write  trace.Writer
	}{{".json", trace.WriteJSON}, {".txt", trace.WriteText}} {
		err := wholefile.Stream(base+f.suffix, func(w io.Writer) error {
			_, err := f.write(w, c.Records, words.Adapters(c.Adapters), 2*trace.MostBytes)
			return err
		})
		if err != nil {
			return nil, err
		}
		full, err := filepath.Abs(base + f.suffix)
		if err != nil {
			return nil, err
		}
		t.add(time.Unix(0, c.Began).Format(time.RFC3339), c.Program, len(c.Records), c.Overwritten, c.Lost, c.Damaged, full)
	}
	return report{t}, nil
}

func readSpool(name string) (c spool.Contents, err error) {
	f, err := os.Open(name)
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	i, err := f.Stat()
	if err != nil {
		return c, err
	}
	if !i.Mode().IsRegular() {
		return c, fmt.Errorf("it is no regular file")
	}
	return spool.Read(f, i.Size())
}
