package mlx5cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/paths"
	"github.com/softvpi/softvpi/internal/pcapng"
)

const (
	snifferRing = 16 << 20
	stopWait    = 10 * time.Second
)

// sniffer is -Sniffer. -Start writes until -Stop of another call, which finds it by a note beside the driver's socket.
func (r *run) sniffer() (report, error) {
	if err := r.only("Name=", "Start", "Stop", "FileName="); err != nil {
		return nil, err
	}
	action, err := r.action("Start", "Stop")
	if err != nil {
		return nil, err
	}
	a, err := r.adapter()
	if err != nil {
		return nil, err
	}
	if action == "Stop" {
		return r.stopSniffer(a)
	}
	if r.value("FileName") == "" {
		return nil, r.usagef("-FileName is missing")
	}
	return r.startSniffer(a)
}

// note is the file that holds the id of the adapter's capture.
func (r *run) note(a *api.AdapterStatus) string {
	socket := r.socket
	if socket == "" {
		socket = paths.Socket()
	}
	return fmt.Sprintf("%s.sniffer-%d", socket, a.Number)
}

// errNotSniffed is an adapter without a sniffer.
var errNotSniffed = errors.New("no sniffer runs on this adapter")

func (r *run) stopSniffer(a *api.AdapterStatus) (report, error) {
	id, err := os.ReadFile(r.note(a))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errNotSniffed
	}
	if err == nil {
		err = r.client.StopCapture(r.ctx, string(id))
	}
	var gone *api.FieldError
	if errors.As(err, &gone) { // of a driver before, or of a process that was killed
		return nil, errors.Join(errNotSniffed, os.Remove(r.note(a)))
	}
	if err != nil {
		return nil, err
	}
	return blocks{list: []block{{title: fmt.Sprintf("Sniffer of adapter %q", a.Name), adapter: a.Name, fields: []field{{"State", "stopped"}}}}, notes: []string{done}}, nil
}

func (r *run) startSniffer(a *api.AdapterStatus) (report, error) {
	file := r.value("FileName")
	out, err := pcapng.NewFiles(file, 0, 0)
	if err != nil {
		return nil, err
	}
	// Not of the context: its end asks for the end of the capture, and the rest of the stream is still wanted.
	id, stream, err := r.client.StartCapture(context.WithoutCancel(r.ctx), api.CaptureRequest{Adapter: a.Name, Ring: snifferRing})
	if err != nil {
		return nil, errors.Join(err, out.Close())
	}
	defer stream.Close()
	if err := os.WriteFile(r.note(a), []byte(id), 0o600); err != nil { // of several sniffers -Stop ends the last
		return nil, errors.Join(err, out.Close())
	}
	defer r.forget(a, id)
	fmt.Fprintf(r.env.Stderr, "%s: capturing %s to %s; -Stop or Ctrl-C ends it\n", r.env.Name, a.Name, file)
	stop := context.AfterFunc(r.ctx, func() {
		ctx, cancel := context.WithTimeout(context.Background(), stopWait)
		defer cancel()
		if r.client.StopCapture(ctx, id) != nil {
			_ = stream.Close() // a driver that does not answer is not waited for
		}
	})
	defer stop()
	_, err = io.Copy(out, stream)
	written, missed, finished := out.Counts()
	if err = errors.Join(err, out.Close()); err == nil && !finished {
		err = errors.New("the driver ended the capture before its statistics; what was captured is in the file")
	}
	if err != nil {
		return nil, err
	}
	b := block{title: fmt.Sprintf("Sniffer of adapter %q", a.Name), adapter: a.Name}
	b.fields = []field{{"File", file}, {"Packets", written}, {"Missed", missed}}
	return blocks{list: []block{b}, notes: []string{done}}, nil
}

// forget removes the note, unless a later sniffer wrote its own.
func (r *run) forget(a *api.AdapterStatus, id string) {
	if now, err := os.ReadFile(r.note(a)); err == nil && strings.TrimSpace(string(now)) == id {
		_ = os.Remove(r.note(a))
	}
}
