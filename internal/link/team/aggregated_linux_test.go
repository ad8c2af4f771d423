package team

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/link/datagram"
	"github.com/softvpi/softvpi/internal/team"
	"github.com/softvpi/softvpi/internal/testbed/await"
)

// line is a pair of unix sockets, which lets LACP pass, as a switch does not.
func line(t testing.TB) (ends [2]*plug) {
	dir, err := os.MkdirTemp("", "line")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := [2]string{filepath.Join(dir, "a"), filepath.Join(dir, "b")}
	for e := range ends {
		l, err := datagram.Open(datagram.Config{Local: path[e], Remote: path[1-e], Patience: await.Limit})
		if err != nil {
			t.Fatal(err)
		}
		ends[e] = &plug{Link: l, room: -1}
	}
	return ends
}

// TestTeam_Aggregated: two teams with a line from member to member; with LACP they agree on it.
func TestTeam_Aggregated(t *testing.T) {
	for _, kind := range []team.Type{team.SLA, team.LACP} {
		t.Run(kind.String(), func(t *testing.T) {
			b := newBed(t)
			var ends [2][]*plug
			for range 3 {
				for e, p := range line(t) {
					ends[e] = append(ends[e], p)
				}
			}
			for e := range ends {
				b.team(kind, ends[e]...)
			}
			b.pass(5 * time.Second) // they need no stations for that
			for e, l := range b.links {
				if s := l.(*Link).WireState(); !s.Up || s.Speed != 3e9 {
					t.Fatalf("end %d is %+v, want three lines", e, s)
				}
				b.serve(l, byte(e+1))
			}
			exchange(b, 1, 2)
			for i := range 2 {
				for e := range ends {
					ends[e][i].out.Store(true)
				}
				b.turn()
				exchange(b, 1, 2)
			}
			if s := b.links[0].(*Link).WireState(); !s.Up || s.Speed != 1e9 {
				t.Errorf("with one line of three it is %+v", s)
			}
		})
	}
}
