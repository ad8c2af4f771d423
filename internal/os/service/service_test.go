package service

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
)

// begin starts a service whose manager notes what it is told, and how the service has failed.
func begin(t *testing.T) (s *Service, ctx context.Context, commands chan Command, told func() ([]State, error)) {
	t.Helper()
	commands = make(chan Command)
	var list []State
	var failure error
	s, ctx = Start(t.Context(), func(serve Serve) error {
		failure = serve(commands, func(n State) { list = append(list, n) })
		return nil
	})
	return s, ctx, commands, func() ([]State, error) { synctest.Wait(); return slices.Clone(list), failure }
}

func expect(t *testing.T, told func() ([]State, error), failure error, want ...State) {
	t.Helper()
	if got, err := told(); !slices.Equal(got, want) || !errors.Is(err, failure) {
		t.Errorf("the manager was told %v and %v, want %v and %v", got, err, want, failure)
	}
}

// TestLife: the manager hears each state once, and again when it asks; the service stops when the manager says so; its first end counts.
func TestLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ctx, commands, told := begin(t)
		s.Ready()
		expect(t, told, nil, Starting, Running)
		commands <- Interrogate
		expect(t, told, nil, Starting, Running, Running)
		if ctx.Err() != nil {
			t.Error("it stops without being told to")
		}
		commands <- Stop
		<-ctx.Done()
		s.Stopping()
		expect(t, told, nil, Starting, Running, Running, Stopping)
		broken := errors.New("broken")
		if err := s.End(broken); !errors.Is(err, broken) {
			t.Error(err)
		}
		if err := s.End(nil); err != nil {
			t.Error(err)
		}
		expect(t, told, broken, Starting, Running, Running, Stopping)
		s.Ready() // nobody hears it, and nothing waits
	})
}

// TestStopBeforeReady: a service that becomes ready while it is to stop does not say that it runs.
func TestStopBeforeReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ctx, commands, told := begin(t)
		commands <- Stop
		<-ctx.Done()
		s.Ready()
		expect(t, told, nil, Starting, Stopping)
		if err := s.End(nil); err != nil {
			t.Error(err)
		}
	})
}

// TestEndBeforeReady: a service that fails while it starts ends with why.
func TestEndBeforeReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ctx, _, told := begin(t)
		broken := errors.New("broken")
		if err := s.End(broken); !errors.Is(err, broken) || ctx.Err() == nil {
			t.Error(err, ctx.Err())
		}
		expect(t, told, broken, Starting)
	})
}

// TestNoManager: without a manager the service is to stop, and its end says why, beside its own failure.
func TestNoManager(t *testing.T) {
	none, broken := errors.New("no manager"), errors.New("broken")
	s, ctx := Start(t.Context(), func(Serve) error { return none })
	<-ctx.Done()
	s.Ready()
	if err := s.End(broken); !errors.Is(err, none) || !errors.Is(err, broken) {
		t.Error(err)
	}
}

// TestNoService: what is no service may be told everything, and its failure is the caller's own.
func TestNoService(t *testing.T) {
	var none *Service
	none.Ready()
	none.Stopping()
	broken := errors.New("broken")
	if err := none.End(broken); err != broken { // the same one, not one that has it
		t.Error(err)
	}
	if err := none.End(nil); err != nil {
		t.Error(err)
	}
}
