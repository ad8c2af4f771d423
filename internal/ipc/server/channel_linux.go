package server

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/budget"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/ipc/proto"
)

// A channel is a pipe whose read end belongs to the program. The write end is a file of its own, so that
// nothing the program does to its end can make the driver block: an eventfd would be one file for both.
//
// completionSize is the size of a message in a channel of completions: the CQ's handle and four zero
// bytes. Messages of the other kinds are command.Event. All are small enough for atomic writes to a pipe
// (PIPE_BUF).
const completionSize = 8

// createChannel creates a channel, and returns the program's end, which the caller releases.
func (n *session) createChannel(ctx context.Context, body []byte) ([]byte, []*file, error) {
	q, err := proto.Decode[command.CreateChannel](body)
	if err != nil {
		return nil, nil, err
	}
	x, err := able[command.Extended](n.client)
	if err != nil {
		return nil, nil, err
	}
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
		return nil, nil, command.Errorf(command.Exhausted, "channel: %v", err)
	}
	_ = unix.SetNonblock(p[1], true) // a flag of this end only
	w := os.NewFile(uintptr(p[1]), "softvpi-channel")
	fail := func(err error) ([]byte, []*file, error) {
		unix.Close(p[0])
		w.Close()
		return nil, nil, err
	}
	if err := n.server.open.full(p[1], n.server.open.last, "a channel"); err != nil {
		return fail(err)
	}
	if err := n.account.Take(budget.Descriptors, 1, "a channel"); err != nil {
		return fail(err)
	}
	h, err := x.CreateChannel(ctx, q, func(cq command.Handle) bool { return writeCompletion(p[1], cq) })
	if err != nil {
		n.account.Give(budget.Descriptors, 1)
		return fail(err)
	}
	n.channels.Add(1)
	go func() {
		defer n.channels.Done()
		// When this returns the channel has ended, and nobody raises anything in it any more.
		defer n.account.Give(budget.Descriptors, 1)
		defer w.Close()
		n.fillChannel(x, h, q.Kind, w)
	}()
	return proto.Encode(proto.HandleArgs{Handle: h}), []*file{newFile(p[0], nil)}, nil
}

// writeCompletion reports an event of a CQ; false: there is no room now. If the program has closed its
// end, the event is dropped.
func writeCompletion(fd int, cq command.Handle) bool {
	var b [completionSize]byte
	binary.LittleEndian.PutUint32(b[:], uint32(cq))
	_, err := unix.Write(fd, b[:])
	return err != unix.EAGAIN
}

// fillChannel writes the events of a channel until the channel or the program ends.
func (n *session) fillChannel(x command.Extended, h command.Handle, kind command.ChannelKind, w *os.File) {
	out := make([]command.Event, proto.MaxPush)
	// It is not closed here: the loop may write to it until the channel has ended.
	stop := context.AfterFunc(n.ctx, func() { _ = w.SetWriteDeadline(time.Unix(1, 0)) })
	defer stop()
	for {
		k, err := x.ChannelEvents(context.Background(), h, out)
		if err != nil {
			return
		}
		for i := range out[:k] {
			b := proto.Encode(out[i])
			if kind == command.Completions {
				b = binary.LittleEndian.AppendUint64(nil, uint64(out[i].Object))
			}
			if _, err := w.Write(b); err != nil {
				n.server.cfg.Log.Debug("a channel is not read any more", "client", n.name, "cause", fmt.Errorf("write: %w", err))
				break // the events are dropped until the program destroys the channel
			}
		}
	}
}
