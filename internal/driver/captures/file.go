package captures

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/softvpi/softvpi/internal/api"
)

// CaptureToFile begins a capture that the driver writes to a file, until EndCapture or the end of the
// driver.
func (r *Recorder) CaptureToFile(q api.CaptureRequest, path string) (api.CaptureStatus, error) {
	if !filepath.IsAbs(path) {
		return api.CaptureStatus{}, api.Wrong("file", strconv.Quote(path), "an absolute path")
	}
	path = filepath.Clean(path)
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() { // a pipe would make the driver wait for a reader
		return api.CaptureStatus{}, api.Wrong("file", strconv.Quote(path), "a file, or a name that is still free")
	}
	c, err := r.capture(q, path)
	if err != nil {
		return api.CaptureStatus{}, err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		close(c.done)
		c.forget()
		return api.CaptureStatus{}, fmt.Errorf("capture: %w", err)
	}
	go func() {
		defer close(c.done)
		err := c.write(context.Background(), f, func() error { return nil })
		c.err = errors.Join(err, f.Close())
		if c.err != nil { // it ended by itself; the error is kept until somebody asks
			r.log.Error("capture", "file", path, "error", c.err)
			_ = r.host.StopCapture(c.index, c.tap) // fails if the adapter is gone
		}
	}()
	return c.status(), nil
}

// Captures returns the running captures, and those to files that have not been ended.
func (r *Recorder) Captures() []api.CaptureStatus {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]api.CaptureStatus, 0, len(r.byID))
	for _, c := range r.byID {
		out = append(out, c.status())
	}
	slices.SortFunc(out, func(a, b api.CaptureStatus) int { return cmp.Or(a.Started.Compare(b.Started), cmp.Compare(a.ID, b.ID)) })
	return out
}

// status returns the current state of the capture.
func (c *capturing) status() api.CaptureStatus {
	s := api.CaptureStatus{ID: c.id, Adapter: c.adapter, QP: c.qp, File: c.file, Started: c.started, Running: true}
	s.Packets, s.Missed = c.tap.Counts()
	if c.notes != nil {
		s.Packets = c.written.Load()
	}
	select {
	case <-c.end:
		s.Running = false
	default:
	}
	select {
	case <-c.done:
		s.Running = false
		if c.err != nil {
			s.Problem = c.err.Error()
		}
	default:
	}
	return s
}

// Close ends all captures and packet buffers, completes the files and prevents new ones. A file that cannot be completed
// was reported when its capture failed, and is no failure of the driver.
func (r *Recorder) Close() {
	if r == nil {
		return
	}
	r.mu.Lock()
	r.closed = true
	var files []*capturing
	for _, c := range r.byID {
		c.stop()
		if c.file != "" {
			files = append(files, c)
		}
	}
	r.mu.Unlock()
	r.buffers.close()
	for _, c := range files {
		<-c.done
		c.forget()
	}
}
