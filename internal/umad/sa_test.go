package umad

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/softvpi/softvpi/wire/mad"
)

// administration answers every request with records, in segments where necessary. lost reports whether the datagram
// with a number, counted from 0, is lost.
func administration(records []byte, lost func(int) bool) func(*Datagram) []Datagram {
	var sender *mad.RMPPSender
	sent := 0
	start := time.Now()
	return func(d *Datagram) (out []Datagram) {
		m, err := mad.ParseSA(d.MAD[:])
		if err != nil {
			return nil
		}
		switch {
		case !m.Active():
			m.Method = mad.MethodGetTableResp
			m.AttrOffset = 1
			sender = mad.NewRMPPSender(m, records)
		case sender != nil:
			sender.Take(&m, time.Since(start))
		}
		for {
			s, more := sender.Next(time.Since(start))
			if !more {
				return out
			}
			if sent++; !lost(sent - 1) {
				out = append(out, Datagram{Remote: d.Remote, MAD: [mad.Len]byte(s.Append(nil))})
			}
		}
	}
}

func never(int) bool { return false }

func tableRequest() *mad.SA {
	m := mad.NewSA(mad.MethodGetTable, mad.AttrLinkRecord, 0, 0)
	return &m
}

func TestQueryPutsSegmentsTogether(t *testing.T) {
	for _, n := range []int{0, 8, 200, 208, 100_000} {
		records := make([]byte, n)
		for i := range records {
			records[i] = byte(i * 7)
		}
		p := newPort(newFar(administration(records, never)), Device{}, 5)
		a, err := p.Query(context.Background(), Address{LID: 1, QP: 1}, tableRequest(), DefaultTiming)
		if err != nil || !bytes.Equal(a.Records, records) || a.Cut || a.AttrOffset != 1 {
			t.Errorf("%d bytes: %v", n, err)
		}
		p.Close()
	}
}

// TestQueryAsksAgain: a transfer whose end is lost is requested again from its beginning.
func TestQueryAsksAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		records := make([]byte, 1000)
		f := newFar(administration(records, func(i int) bool { return i == 4 }))
		p := newPort(f, Device{}, 5)
		defer p.Close()
		a, err := p.Query(context.Background(), Address{}, tableRequest(), Timing{20 * time.Millisecond, 20})
		if err != nil {
			t.Fatal(err)
		}
		if len(a.Records) != 1000 {
			t.Errorf("got %d bytes, want 1000", len(a.Records))
		}
	})
}

func TestQueryBrokenOff(t *testing.T) {
	f := newFar(func(d *Datagram) []Datagram {
		m, _ := mad.ParseSA(d.MAD[:])
		m.Method = mad.MethodGetTableResp
		m.RMPP = mad.RMPP{Version: 1, Type: mad.RMPPAbort, Flags: mad.RMPPActive, Status: 120}
		return []Datagram{{MAD: [mad.Len]byte(m.Append(nil))}}
	})
	p := newPort(f, Device{}, 5)
	defer p.Close()
	var broken *mad.RMPPError
	if _, err := p.Query(context.Background(), Address{}, tableRequest(), DefaultTiming); !errors.As(err, &broken) || broken.Status != 120 {
		t.Errorf("error %v, want a transfer broken off with status 120", err)
	}
}

// TestQueryUnsegmented: ibsim's own clients send a table as one datagram with its length; what does not fit is lost.
func TestQueryUnsegmented(t *testing.T) {
	for length, want := range map[int]struct {
		records int
		cut     bool
	}{168: {112, false}, 56: {0, false}, 0: {200, true}, 40: {200, true}} {
		p := newPort(newFar(func(d *Datagram) []Datagram {
			m, _ := mad.ParseSA(d.MAD[:])
			m.Method, m.AttrOffset = mad.MethodGetTableResp, 14
			m.RMPP.Flags = mad.RMPPActive
			return []Datagram{{MAD: [mad.Len]byte(m.Append(nil)), Length: length}}
		}), Device{}, 5)
		a, err := p.Query(context.Background(), Address{}, tableRequest(), DefaultTiming)
		if err != nil || len(a.Records) != want.records || a.Cut != want.cut {
			t.Errorf("length %d: %d bytes, cut %v, %v", length, len(a.Records), a.Cut, err)
		}
		p.Close()
	}
}
