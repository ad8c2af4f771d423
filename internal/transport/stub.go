package transport

import (
	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/wire/ib"
)

type responder struct {
	psn     ib.PSN
	recv    *receive
	lastWQE bool
}

type ucSend struct{}

func (r *responder) busyReads() int { return 0 }
func (r *responder) resize(n int)   {}
func (q *QP) dropResponder()        {}

func (q *QP) respond(out []frame.Out) (int, bool)                { return 0, false }
func (q *QP) sendUC(now clock.Time, out []frame.Out) (int, bool) { return 0, false }
func (q *QP) sendUD(now clock.Time, out []frame.Out) (int, bool) { return 0, false }

// Receive takes packets that encap let through, in the order of arrival.
func (e *Engine) Receive(now clock.Time, in []frame.In) { e.now = now }
