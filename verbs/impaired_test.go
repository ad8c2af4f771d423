package verbs_test

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/testbed"
	"github.com/softvpi/softvpi/verbs"
)

// An embedded adapter impairs its packets as configured: with some loss the data still arrives intact, with total loss no peer is
// reachable, and an invalid impairment is rejected by name.
func TestEmbeddedImpairment(t *testing.T) {
	embed := func(impairment string) (*verbs.Host, *testbed.Bed, error) {
		b := &testbed.Bed{Mode: verbs.Embedded, Addrs: testbed.Addrs()}
		adapters := testbed.Adapters(b.Addrs)
		adapters[1].Impairment = impairment
		h, err := verbs.Embed(verbs.Config{Name: "test", Adapters: adapters})
		b.Server, b.Client = h, h
		if err == nil {
			t.Cleanup(func() { ok(t, h.Close()) })
		}
		return h, b, err
	}
	if _, _, err := embed("loss=200%"); !errors.Is(err, verbs.ErrInvalid) || !strings.Contains(err.Error(), "Impairment") {
		t.Errorf("loss=200%%: %v", err)
	}
	_, b, err := embed("loss=10% seed=7")
	ok(t, err)
	server, client := connected(t, b)
	for range 20 {
		client.send(t, verbs.SendWR{Op: verbs.OpWrite, SGE: []verbs.SGE{client.mr.SGE(0, memory)}, RemoteAddr: server.mr.RemoteAddr(),
			RKey: server.mr.RKey()})
		client.want(t, verbs.CompletedWrite, verbs.Success)
	}
	again := uint64(0)
	for _, c := range must(client.dev.Counters())(t) {
		if strings.Contains(c.Name, "sent again") || strings.Contains(c.Name, "etransmit") {
			again += c.Value
		}
	}
	if again == 0 {
		t.Error("nothing was sent again")
	}
	_, b, err = embed("loss=100%")
	ok(t, err)
	server, client = newSide(t, b, 0, verbs.RC), newSide(t, b, 1, verbs.RC)
	l := must(server.dev.Listen(netip.AddrPortFrom(server.dev.Addr(), 0), 0))(t)
	defer l.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	client.id = must(client.dev.NewID())(t)
	if err := client.id.Connect(ctx, l.Addr(), client.qp, param); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("connecting while all is lost: %v", err)
	}
}

// SOFTVPI_ANY_SOURCE_PORT is 1, 0 or nothing; anything else is refused by name.
func TestAnySourcePortInTheEnvironment(t *testing.T) {
	for value, good := range map[string]bool{"": true, "0": true, "1": true, "sometimes": false} {
		t.Setenv("SOFTVPI_ANY_SOURCE_PORT", value)
		h, err := verbs.Embed(verbs.Config{Name: "test", Adapters: testbed.Adapters(testbed.Addrs())})
		if good {
			ok(t, err)
			ok(t, h.Close())
		} else if !errors.Is(err, verbs.ErrInvalid) || !strings.Contains(err.Error(), "SOFTVPI_ANY_SOURCE_PORT") {
			t.Errorf("%q: %v", value, err)
		}
	}
}
