package direct

import "testing"

// explore visits every interleaving of processes made of atomic steps, under sequential consistency, which
// sync/atomic guarantees. A step reports whether it could be taken. final is called where no process can move.
func explore[S comparable](start S, steps []func(*S) bool, final func(S)) int {
	seen := map[S]bool{start: true}
	work := []S{start}
	for len(work) > 0 {
		s := work[len(work)-1]
		work = work[:len(work)-1]
		moved := false
		for _, step := range steps {
			next := s
			if !step(&next) {
				continue
			}
			moved = true
			if !seen[next] {
				seen[next] = true
				work = append(work, next)
			}
		}
		if !moved {
			final(s)
		}
	}
	return len(seen)
}

// TestRecallExcludesTheInitiator: an initiator and the driver never work on the queues of a direction at the same
// time, however often it is recalled, given back and delegated again.
func TestRecallExcludesTheInitiator(t *testing.T) {
	type state struct {
		lease, op   uint8
		at, times   uint8 // initiator
		saw         uint8
		driver      uint8
		rounds      uint8
		works, runs bool
	}
	initiator := func(s *state) bool {
		switch s.at {
		case 0:
			if s.times == 3 {
				return false
			}
			s.times++
			s.op++
			s.at = 1
		case 1:
			s.saw = s.lease
			if s.at = 4; s.saw != 0 {
				s.at, s.works = 2, true
			}
		case 2:
			s.works, s.at = false, 4
			if s.times == 2 { // an operation that it cannot do
				s.at = 3
			}
		case 3:
			s.lease = 0
			s.at = 4
		case 4:
			s.op++
			s.at = 0
		}
		return true
	}
	driver := func(s *state) bool {
		switch s.driver {
		case 0: // delegated
			s.lease = 0
			s.driver = 1
		case 1:
			if s.op&1 != 0 {
				return false // looks again later
			}
			s.driver, s.runs = 2, true
		case 2:
			s.runs = false
			if s.rounds++; s.rounds == 3 {
				s.driver = 3
				return true
			}
			s.lease, s.driver = s.rounds+1, 0
		default:
			return false
		}
		return true
	}
	ends := 0
	n := explore(state{lease: 1}, []func(*state) bool{func(s *state) bool {
		ok := initiator(s)
		if s.works && s.runs {
			t.Fatal("both work on the queues")
		}
		return ok
	}, func(s *state) bool {
		ok := driver(s)
		if s.works && s.runs {
			t.Fatal("both work on the queues")
		}
		return ok
	}}, func(s state) {
		if ends++; s.driver != 3 || s.op&1 != 0 {
			t.Fatalf("stuck: %+v", s)
		}
	})
	t.Logf("%d states, %d ends", n, ends)
}

// TestNoReceiveIsMissed: a receive posted while the initiator gives up for want of one is not missed: the responder
// rings the doorbell if the direction is not delegated, and the driver looks at the queues after it has taken the
// direction back.
func TestNoReceiveIsMissed(t *testing.T) {
	type state struct {
		lease          bool
		op             uint8
		posted, taken  bool // the receive
		request, bell  bool
		initiator      uint8
		responder      uint8
		driver         uint8
		home, finished bool
	}
	initiator := func(s *state) bool {
		switch s.initiator {
		case 0:
			s.op++
		case 1:
			if !s.lease {
				s.initiator = 4
				return true
			}
		case 2:
			if s.posted {
				s.taken, s.finished, s.initiator = true, true, 7
				s.op++
				return true
			}
		case 3:
			s.lease = false
		case 4:
			s.op++
		case 5:
			s.request = true
		case 6:
			s.bell = true
		default:
			return false
		}
		s.initiator++
		return true
	}
	responder := func(s *state) bool {
		switch s.responder {
		case 0:
			s.posted = true
		case 1:
			if s.lease {
				s.responder = 3
				return true
			}
		case 2:
			s.bell = true
		default:
			return false
		}
		s.responder++
		return true
	}
	driver := func(s *state) bool {
		switch s.driver {
		case 0: // sleeps
			if !s.bell {
				return false
			}
			s.bell, s.driver = false, 1
		case 1:
			switch {
			case s.home:
				s.driver = 3
			case s.request && !s.lease:
				s.driver = 2
			default:
				s.driver = 0
			}
		case 2:
			if s.op&1 != 0 {
				return false
			}
			s.home, s.driver = true, 3
		case 3:
			if s.request && s.posted && !s.taken {
				s.taken, s.finished = true, true
			}
			s.driver = 0
		}
		return true
	}
	explore(state{lease: true}, []func(*state) bool{initiator, responder, driver}, func(s state) {
		if !s.finished {
			t.Fatalf("the message waits for ever: %+v", s)
		}
	})
}
