package captures

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/link/capture"
	"github.com/softvpi/softvpi/internal/pcapng"
	"github.com/softvpi/softvpi/wire/ib"
)

// checkQP checks what a request says of a queue pair.
func checkQP(q api.CaptureRequest) error {
	switch {
	case q.QP > uint32(ib.QPNMask):
		return api.Wrong("qp", strconv.FormatUint(uint64(q.QP), 10), "1 to 16777215")
	case q.Comments && q.QP == 0:
		return api.Wrong("comments", "true", "false unless qp names a queue pair, whose packets have comments")
	}
	return nil
}

// start begins what c reads.
func (r *Recorder) start(c *capturing) error {
	if c.qp == 0 {
		return r.host.StartCapture(c.index, c.tap)
	}
	err := r.host.StartQPCapture(c.index, c.tap, c.qp)
	if code := (*command.Error)(nil); errors.As(err, &code) && code.Code == command.NotFound {
		return api.Wrong("qp", strconv.FormatUint(uint64(c.qp), 10), r.queuePairs(c.index))
	}
	return err
}

// queuePairs names the queue pairs of an adapter whose packets can be told apart.
func (r *Recorder) queuePairs(index uint32) string {
	const most = 20
	var list []string
	s, err := r.host.Inspect(index, most)
	if err != nil {
		return "none, as the adapter is gone"
	}
	for _, q := range s.QPs {
		if q.Type != command.RawPacket {
			list = append(list, strconv.FormatUint(uint64(q.Number), 10))
		}
	}
	if len(list) == 0 {
		return "that of a queue pair of the adapter, which has none now"
	}
	return "that of a queue pair of the adapter, which has " + strings.Join(list, " ")
}

// put writes a packet, or takes it to where it waits for its note.
func (c *capturing) put(out *pcapng.Writer, p *capture.Packet) error {
	if c.notes != nil {
		return c.notes.Add(p)
	}
	c.written.Add(1)
	return out.Packet(p, "")
}

// judged writes the packets of the queue pair that have their notes.
func (c *capturing) judged(out *pcapng.Writer) error {
	return c.noted(out, func(p *capture.Packet) (string, bool) { return c.notes.Next(time.Now(), p) })
}

// rest writes all that wait.
func (c *capturing) rest(out *pcapng.Writer) error {
	return c.noted(out, func(p *capture.Packet) (string, bool) { return c.notes.Rest(p) })
}

func (c *capturing) noted(out *pcapng.Writer, next func(*capture.Packet) (string, bool)) error {
	if c.notes == nil {
		return nil
	}
	var p capture.Packet
	for {
		comment, ok := next(&p)
		if !ok {
			return nil
		}
		if !c.comments {
			comment = ""
		}
		if err := out.Packet(&p, comment); err != nil {
			return err
		}
		c.written.Add(1)
	}
}
