// Package ibdump is the tool of that name: it captures what passes an adapter's port to a file for
// Wireshark (WinOF 5.50, "Utility Description"; the options are those of the original).
package ibdump

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/softvpi/softvpi/internal/driver"
	"github.com/softvpi/softvpi/internal/link/capture"
	"github.com/softvpi/softvpi/internal/pcapng"
	"github.com/softvpi/softvpi/internal/tools/tool"
)

const (
	defaultFile  = "sniffer.pcapng"
	defaultBurst = 12
	maxBurst     = 15
	entry        = 4096 + 256 // memory of a packet: the largest payload with its headers
	stopWait     = 10 * time.Second
)

const synopsis = `usage: ibdump [options]
Captures what the port of an adapter sends and receives, in pcapng format, until Ctrl-C. On wires of whole frames that is what
RDMA and the Ethernet function carry. Meanwhile connections on the local and direct paths go over the wire, so that there are packets to see.
Packets that found no room are counted in the file's statistics and at the end.`

type options struct {
	device   string
	port     int
	file     string
	burst    int
	silent   bool
	socket   string
	snap     int
	size     int
	files    int
	duration time.Duration
	count    int
	version  bool
	json     bool
	qp       int
	comments bool
}

// Main runs ibdump.
func Main(ctx context.Context, env tool.Env) int {
	var o options
	f := tool.NewFlags(env, synopsis)
	for _, name := range []string{"d", "ib-dev"} {
		f.StringVar(&o.device, name, "", "`adapter` by name or number from 0 (default: the first)")
	}
	for _, name := range []string{"i", "ib-port"} {
		f.Int(&o.port, name, 1, 1, 1, "of the port; an adapter has one")
	}
	for _, name := range []string{"w", "write", "o", "output"} {
		f.StringVar(&o.file, name, defaultFile, "`file` to write (default "+defaultFile+"); - is standard output")
	}
	for _, name := range []string{"b", "max-burst"} {
		f.Int(&o.burst, name, defaultBurst, 6, maxBurst, "(a binary logarithm) of packets in the longest burst captured without loss")
	}
	for _, name := range []string{"s", "silent"} {
		f.BoolVar(&o.silent, name, false, "print no progress")
	}
	for _, name := range []string{"v", "version"} {
		f.BoolVar(&o.version, name, false, "print the format that is written, and exit")
	}
	f.Int(&o.snap, "snaplen", 0, 0, capture.MaxSnap, "of bytes kept of each packet, 0 for all")
	f.Int(&o.size, "file-size", 0, 1, 1<<20, "of MiB at which the next file of a ring begins")
	f.Int(&o.files, "files", 2, 1, 10000, "of files of the ring to keep; the oldest are deleted")
	f.Int(&o.count, "count", 0, 1, 1<<30, "of packets after which to end")
	f.Seconds(&o.duration, "duration", "after which to end")
	f.Int(&o.qp, "qp", 0, 1, 1<<24-1, "of the queue pair whose packets alone are captured")
	f.BoolVar(&o.comments, "comments", false, "with --qp, say in a comment of each packet what the adapter did with it, or why it was sent")
	f.BoolVar(&o.json, "json", false, "at the end, print what was captured as JSON")
	f.StringVar(&o.socket, "socket", "", "`path` of the driver's socket")
	if status, done := f.Parse(); done {
		return status
	}
	if err := errors.Join(f.NoArguments(), o.check(f)); err != nil {
		return f.Refuse(err)
	}
	if o.version {
		fmt.Fprintln(env.Stdout, env.Name+": SoftVPI, writes pcapng 1.0")
		return tool.Success
	}
	if err := o.run(ctx, env); err != nil {
		return env.End(context.WithoutCancel(ctx), err) // the end of ctx is the normal end of the capture, no failure
	}
	return tool.Success
}

func (o *options) check(f *tool.Flags) error {
	switch {
	case o.file == "-" && o.json:
		return tool.Usagef("--json has standard output; allowed with -w: a file name")
	case o.file == "-" && o.size != 0:
		return tool.Usagef("--file-size cuts files; allowed with -w: a file name")
	case o.comments && o.qp == 0:
		return tool.Usagef("--comments needs --qp, the queue pair whose packets have comments")
	case f.Given("files") && o.size == 0:
		return tool.Usagef("--files needs --file-size, the size at which a new file begins")
	}
	return nil
}

func (o *options) run(ctx context.Context, env tool.Env) error {
	admin := driver.NewAdmin(o.socket)
	name, err := o.adapter(ctx, admin)
	if err != nil {
		return err
	}
	var out *pcapng.Files
	if o.file == "-" {
		out = pcapng.NewStream(env.Stdout)
	} else if out, err = pcapng.NewFiles(o.file, int64(o.size)<<20, o.files); err != nil {
		return err
	}
	out.Most(uint64(o.count))
	err = o.capture(ctx, env, admin, name, out)
	return errors.Join(err, out.Close())
}

// adapter finds the adapter by name or number.
func (o *options) adapter(ctx context.Context, admin *driver.Admin) (string, error) {
	s, err := admin.Status(ctx)
	if err != nil {
		return "", err
	}
	for i := range s.Adapters {
		if o.device == "" || o.device == strconv.Itoa(i) {
			return s.Adapters[i].Name, nil
		}
	}
	a, err := s.Adapter("-d", o.device)
	if err != nil {
		return "", err
	}
	return a.Name, nil
}

func (o *options) capture(ctx context.Context, env tool.Env, admin *driver.Admin, name string, out *pcapng.Files) error {
	q := driver.CaptureRequest{Adapter: name, Snap: o.snap, Ring: max(capture.MinRing, entry<<o.burst), QP: uint32(o.qp),
		Comments: o.comments}
	// Not with ctx: its end requests the end of the capture, after which the rest of the stream is still wanted.
	id, stream, err := admin.StartCapture(context.WithoutCancel(ctx), q)
	if err != nil {
		return err
	}
	defer stream.Close()
	if !o.silent {
		fmt.Fprintf(env.Stderr, "%s: capturing %s to %s; Ctrl-C ends it\n", env.Name, name, o.file)
	}
	if o.duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.duration)
		defer cancel()
	}
	ended := make(chan struct{})
	enough := make(chan struct{})
	stopped := make(chan error, 1)
	go func() { stopped <- stopAt(ctx, ended, enough, admin, id, stream) }()
	err = o.copy(env, out, stream, enough)
	close(ended)
	err = errors.Join(err, <-stopped)
	written, missed, finished := out.Counts()
	if !o.silent {
		fmt.Fprintf(env.Stderr, "%s: %d packets captured, %d missed\n", env.Name, written, missed)
	}
	if o.json {
		e := json.NewEncoder(env.Stdout)
		e.SetIndent("", "  ")
		err = errors.Join(err, e.Encode(summary{name, out.Names(), written, missed, finished}))
	}
	if err == nil && !finished {
		err = errors.New("the driver ended the capture before its statistics; what was captured is in the file")
	}
	return err
}

// summary describes a capture as JSON.
type summary struct {
	Adapter  string   `json:"adapter"`
	Files    []string `json:"files"`
	Packets  uint64   `json:"packets"`
	Missed   uint64   `json:"missed"`
	Complete bool     `json:"complete"` // with its statistics
}

// stopAt makes the driver end the capture when the user, the time or the count demands it. It does not
// wait for a driver that does not answer.
func stopAt(ctx context.Context, ended, enough <-chan struct{}, admin *driver.Admin, id string, stream io.Closer) error {
	select {
	case <-ended:
		return nil
	case <-enough:
	case <-ctx.Done():
	}
	ctx, cancel := context.WithTimeout(context.Background(), stopWait)
	defer cancel()
	err := admin.StopCapture(ctx, id)
	select {
	case <-ended:
		return nil // it ended by itself meanwhile
	case <-ctx.Done():
	}
	return errors.Join(err, stream.Close())
}

// copy writes the stream until it ends. It signals once that there are enough packets.
func (o *options) copy(env tool.Env, out *pcapng.Files, stream io.Reader, enough chan<- struct{}) error {
	b := make([]byte, 1<<18)
	told := time.Now()
	for {
		n, err := stream.Read(b)
		if _, werr := out.Write(b[:n]); werr != nil {
			if enough != nil {
				close(enough)
			}
			return fmt.Errorf("write %s: %w", o.file, werr)
		}
		written, _, _ := out.Counts()
		if o.count > 0 && written >= uint64(o.count) && enough != nil {
			close(enough)
			enough = nil
		}
		if env.Terminal && !o.silent && time.Since(told) > time.Second {
			fmt.Fprintf(env.Stderr, "\r%d packets", written)
			told = time.Now()
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, os.ErrClosed):
			return nil // closed by stopAt, which says why
		case err != nil:
			return fmt.Errorf("capture: %w", err)
		}
	}
}
