package verbs

import (
	"testing"

	"github.com/softvpi/softvpi/internal/direct"
	"github.com/softvpi/softvpi/internal/ring"
)

// Who receives a stream takes its time between looks, for a while; who answers does not.
func TestReceiversOfStreamsAreCalm(t *testing.T) {
	var cq CQ
	if cq.calm(1) {
		t.Error("calm before anything was received")
	}
	cq.streamed.Store(true)
	if !cq.calm(calmLooks) {
		t.Error("not calm while receives complete")
	}
	if cq.calm(calmLooks + 1) {
		t.Error("calm although nothing has come for long")
	}
	cq.answered()
	if cq.calm(1) {
		t.Error("calm after a request was posted")
	}
}

// Only what peers complete on the direct path is a stream: a driver of the program's own
// works as it is polled.
func TestReceivesThroughTheDriverAreNoStream(t *testing.T) {
	cq := CQ{users: map[uint32]*QP{}}
	qp := &QP{number: 7}
	cq.users[7] = qp
	e := []ring.CQE{{QPN: 7, Flags: ring.ReceiveSide}}
	cq.settle(e)
	if cq.streamed.Load() {
		t.Error("a queue pair without a direct path is streamed to")
	}
	record := new(direct.Record)
	slot := new(direct.Slot)
	slot.Store(direct.NewInitiator(record, 0, direct.Surroundings{}))
	qp.direct = slot
	if cq.settle(e); cq.streamed.Load() {
		t.Error("a path that is not lent is streamed on")
	}
	record.Way[1].Lend(1, new(direct.Terms))
	if cq.settle(e); !cq.streamed.Load() {
		t.Error("receives on a path that is lent are no stream")
	}
}
