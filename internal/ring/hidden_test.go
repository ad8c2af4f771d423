package ring

import "testing"

// hiding is one run of producers of a CQ and of its consumer, which sleeps until an event for solicited completions.
type hiding struct {
	loop, program *CQ
	push          *Shared
	slot          [2]uint32
	pc            [3]int // of two producers and of the consumer
	sequence      uint32 // before it armed
	got           int    // solicited completions
}

// producerSteps carries out a step of a producer in the second ring: claim, fill or give up, raise.
func (h *hiding) producerSteps(p int, e *CQE) bool {
	switch owner := uint32(p + 1); h.pc[p] {
	case 0:
		h.slot[p], _ = h.push.Claim(owner)
	case 1:
		if e == nil {
			h.push.Cancel(h.slot[p], owner)
		} else {
			h.push.Fill(h.slot[p], owner, e, 0)
		}
	case 2:
		h.push.Raise(h.slot[p], e)
	default:
		return false
	}
	h.pc[p]++
	return true
}

// loopSteps carries out a step of the loop, which pushes to the first ring.
func (h *hiding) loopSteps(p int, e *CQE) bool {
	switch h.pc[p] {
	case 0:
		if err := h.loop.Fill(e); err != nil {
			panic(err)
		}
		h.loop.Publish()
	case 1:
		if h.loop.Wants(e) {
			h.loop.Fire()
		}
	default:
		return false
	}
	h.pc[p]++
	return true
}

// consumerStep arms, polls, or wakes up; false: it sleeps.
func (h *hiding) consumerStep() bool {
	switch h.pc[2] {
	case 0:
		h.sequence = h.program.Sequence()
		h.program.Arm(ArmSolicited)
		h.pc[2] = 1
	case 1:
		var out [4]CQE
		n := h.program.Poll(out[:])
		for i := range n {
			if out[i].Flags&IsSolicited != 0 {
				h.got++
			}
		}
		if n == 0 {
			h.pc[2] = 2
		}
	case 2:
		if h.program.Sequence() == h.sequence {
			return false
		}
		h.pc[2] = 0
	}
	return true
}

// TestHiddenCompletionsRaiseEvents: in every interleaving no solicited completion is left behind a consumer that sleeps,
// also if a slot that was claimed before it hid it when its own event was raised.
func TestHiddenCompletionsRaiseEvents(t *testing.T) {
	plain, solicited := &CQE{ID: 1}, &CQE{ID: 2, Flags: IsSolicited}
	for _, c := range []struct {
		name  string
		first *CQE // nil: given up
		loop  bool // the solicited completion comes through the first ring
	}{
		{"plain before solicited", plain, false}, {"canceled before solicited", nil, false},
		{"plain before the first ring", plain, true}, {"canceled before the first ring", nil, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			begin := func() *hiding {
				h := &hiding{}
				h.loop, h.program, h.push = newBoth(t, 4)
				return h
			}
			step := func(h *hiding, p int) bool {
				switch {
				case p == 2:
					return h.consumerStep()
				case p == 1 && c.loop:
					return h.loopSteps(p, solicited)
				case p == 1:
					return h.producerSteps(p, solicited)
				}
				return h.producerSteps(p, c.first)
			}
			runs := 0
			var visit func(path []int)
			visit = func(path []int) {
				moved := false
				for p := range 3 {
					h := begin()
					for _, q := range path {
						step(h, q)
					}
					if !step(h, p) {
						continue
					}
					moved = true
					if visit(append(path[:len(path):len(path)], p)); t.Failed() {
						return
					}
				}
				if moved {
					return
				}
				runs++
				h := begin()
				for _, q := range path {
					step(h, q)
				}
				if h.got != 1 {
					t.Fatalf("the consumer sleeps with %d of 1 solicited completions after steps %v", h.got, path)
				}
			}
			visit(nil)
			t.Logf("%d interleavings", runs)
			if runs < 100 {
				t.Errorf("only %d interleavings", runs)
			}
		})
	}
}

// TestHiddenCompletionRaisesNoEvent: a completion behind a claimed slot raises no event, which would make the consumer look
// in vain; the one that makes both visible does.
func TestHiddenCompletionRaisesNoEvent(t *testing.T) {
	_, program, s := newBoth(t, 4)
	for round := range uint32(10) {
		program.Arm(ArmAny)
		first, _ := s.Claim(1)
		second, _ := s.Claim(2)
		third, _ := s.Claim(3)
		for _, slot := range []uint32{third, second} {
			s.Fill(slot, slot-first+1, &CQE{ID: uint64(slot - first + 1)}, 0)
			if s.Raise(slot, &CQE{}); program.Sequence() != round {
				t.Fatalf("round %d: an event for a completion that cannot be polled", round)
			}
		}
		s.Fill(first, 1, &CQE{ID: 1}, 0)
		if s.Raise(first, &CQE{}); program.Sequence() != round+1 {
			t.Fatalf("round %d: no event", round)
		}
		same(t, ids(program, 4), 1, 2, 3)
	}
}
