package sa

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

func newClient(t testing.TB, cfg Config) *Client {
	t.Helper()
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func ask(t testing.TB, c *Client, now clock.Time, r Request) Ticket {
	t.Helper()
	k, err := c.Ask(now, r)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// sent returns the requests that the client wants sent, and the LIDs that they go to.
func sent(t testing.TB, c *Client) (all []mad.SA, to []ib.LID) {
	t.Helper()
	var out [3]Datagram
	for n := c.Transmit(out[:]); n > 0; n = c.Transmit(out[:]) {
		for _, d := range out[:n] {
			m, err := mad.ParseSA(d.MAD[:])
			if err != nil {
				t.Fatal(err)
			}
			all, to = append(all, m), append(to, d.DLID)
		}
	}
	return all, to
}

func answers(c *Client) (all []Answer) {
	var out [2]Answer
	for n := c.Answers(out[:]); n > 0; n = c.Answers(out[:]) {
		all = append(all, out[:n]...)
	}
	return all
}

// respond returns the answer to a request with this status and data.
func respond(m mad.SA, status uint16, data []byte) []byte {
	m.Method, m.Status = mad.MethodGetResp, status
	clear(m.Data[:])
	copy(m.Data[:], data)
	return m.Append(nil)
}

// A request goes to the subnet manager's LID, and its answer is handed out under the request's ticket.
func TestAnswer(t *testing.T) {
	c := newClient(t, Config{Transaction: 7 << 32})
	c.SetManager(3, 2)
	from, to := ib.GID{15: 1}, ib.GID{15: 2}
	k := ask(t, c, 0, Path(from, to, 0x8001))
	m, lids := sent(t, c)
	if len(m) != 1 || lids[0] != 3 || m[0].Class != mad.ClassSubnetAdm || m[0].Method != mad.MethodGet ||
		m[0].AttributeID != mad.AttrPathRecord || m[0].TransactionID>>32 != 7 {
		t.Fatalf("sent %+v to %v", m, lids)
	}
	r, err := mad.ParsePathRecord(m[0].Data[:])
	if err != nil || r.SGID != from || r.DGID != to || r.PKey != 0x8001 || !r.Reversible || r.NumPath != 1 {
		t.Errorf("the request asks for %+v, %v", r, err)
	}
	if want := uint64(mad.PathSGID | mad.PathDGID | mad.PathReversible | mad.PathNumPath | mad.PathPKey); m[0].ComponentMask != want {
		t.Errorf("components %#x, want %#x", m[0].ComponentMask, want)
	}
	other := m[0]
	other.TransactionID++
	attribute := m[0]
	attribute.AttributeID = mad.AttrMCMemberRecord
	for name, b := range map[string][]byte{"nothing": nil, "another's": respond(other, 0, nil),
		"another attribute": respond(attribute, 0, nil), "a request": m[0].Append(nil)} {
		if c.Receive(0, b) {
			t.Errorf("%s is accepted as the answer", name)
		}
	}
	r.DLID = 9
	if !c.Receive(0, respond(m[0], 0, r.Append(nil))) {
		t.Fatal("the answer is not accepted")
	}
	a := answers(c)
	if len(a) != 1 || a[0].Ticket != k || a[0].Err != nil {
		t.Fatalf("answers %+v, want one without an error for ticket %v", a, k)
	}
	if got, _ := mad.ParsePathRecord(a[0].Data[:]); got != r {
		t.Errorf("the answer is %+v, want %+v", got, r)
	}
	if c.Deadline() != clock.Never || c.Receive(0, respond(m[0], 0, nil)) {
		t.Error("the answered request is still outstanding")
	}
}

// A request is sent once and then again as often as SaRetries says, SaTimeout apart; then it ends with ErrTimeout.
func TestRetries(t *testing.T) {
	c := newClient(t, Config{Timeout: 100 * time.Millisecond, Retries: 3})
	c.SetManager(3, 0)
	ask(t, c, 0, Find(netip.MustParseAddr("10.0.0.1")))
	times := []time.Duration{}
	now := clock.Time(0)
	for c.Deadline() != clock.Never {
		if m, _ := sent(t, c); len(m) == 1 {
			times = append(times, time.Duration(now))
		}
		now = c.Deadline()
		c.Advance(now)
	}
	if len(times) != 4 || times[3] != 300*time.Millisecond || now != clock.Time(400*time.Millisecond) {
		t.Errorf("sent at %v, over at %v; want 4 times, the last at 300ms, and over at 400ms", times, now)
	}
	if a := answers(c); len(a) != 1 || !errors.Is(a[0].Err, ErrTimeout) {
		t.Errorf("answers %+v, want one with %v", a, ErrTimeout)
	}
	if n := c.Counters(); n.Requests != 1 || n.Retries != 3 || n.Timeouts != 1 {
		t.Errorf("counters %+v, want 1 request, 3 retries and 1 timeout", n)
	}
}

// A request that is answered with busy is sent again later; a refusal ends it with the status.
func TestStatus(t *testing.T) {
	c := newClient(t, Config{})
	c.SetManager(3, 0)
	ask(t, c, 0, Path(ib.GID{}, ib.GID{}, 0))
	m, _ := sent(t, c)
	if !c.Receive(0, respond(m[0], mad.StatusBusy, nil)) || len(answers(c)) != 0 {
		t.Error("the answer busy was not accepted, or ended the request")
	}
	c.Advance(c.Deadline())
	if m, _ = sent(t, c); len(m) != 1 {
		t.Fatal("the request was not sent again after busy")
	}
	c.Receive(0, respond(m[0], mad.SANoRecords, nil))
	var e *StatusError
	if a := answers(c); len(a) != 1 || !errors.As(a[0].Err, &e) || e.Status != mad.SANoRecords {
		t.Errorf("answers %+v, want one with the status %#x", a, mad.SANoRecords)
	}
}

// Without a subnet manager requests wait, and end with ErrNoManager when their time is over. A new manager is sent at
// once what the old one did not answer.
func TestManagers(t *testing.T) {
	c := newClient(t, Config{Timeout: time.Second, Retries: 2})
	ask(t, c, 0, Path(ib.GID{}, ib.GID{}, 0))
	if m, _ := sent(t, c); len(m) != 0 {
		t.Fatalf("%d requests sent to nobody", len(m))
	}
	for _, lid := range []ib.LID{5, 6} {
		c.SetManager(lid, 0)
		c.SetManager(lid, 0)
		if m, to := sent(t, c); len(m) != 1 || to[0] != lid {
			t.Errorf("%d requests sent to %v, want one to %d", len(m), to, lid)
		}
	}
	c.SetManager(0, 0)
	for c.Deadline() != clock.Never {
		c.Advance(c.Deadline())
	}
	if a := answers(c); len(a) != 1 || !errors.Is(a[0].Err, ErrNoManager) {
		t.Errorf("answers %+v, want one with %v", a, ErrNoManager)
	}
}

// A port has at most window requests outstanding at a subnet administration, and at most maxPending requests that
// wait or are outstanding.
func TestBounds(t *testing.T) {
	c := newClient(t, Config{})
	c.SetManager(3, 0)
	for range maxPending {
		ask(t, c, 0, Path(ib.GID{}, ib.GID{}, 0))
	}
	if _, err := c.Ask(0, Path(ib.GID{}, ib.GID{}, 0)); !errors.Is(err, ErrFull) {
		t.Errorf("one more than maxPending: %v, want %v", err, ErrFull)
	}
	m, _ := sent(t, c)
	if len(m) != window {
		t.Fatalf("%d are sent, want %d", len(m), window)
	}
	c.Receive(0, respond(m[1], 0, nil))
	if m, _ = sent(t, c); len(m) != 1 {
		t.Errorf("%d are sent after an answer, want 1", len(m))
	}
}

// Received bytes never make the client panic, and no short MAD is accepted.
func FuzzReceive(f *testing.F) {
	c := newClient(f, Config{})
	c.SetManager(3, 0)
	ask(f, c, 0, Path(ib.GID{}, ib.GID{}, 0))
	m, _ := sent(f, c)
	f.Add(respond(m[0], 0, nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		c := newClient(t, Config{})
		c.SetManager(3, 0)
		ask(t, c, 0, Path(ib.GID{}, ib.GID{}, 0))
		if took := c.Receive(0, b); took && len(b) < mad.Len {
			t.Error("a MAD that is too short is accepted")
		}
	})
}

// A service record's data hold an IPv6 address in 16 bytes and an IPv4 address in the last four of them.
func TestAddressesAreServices(t *testing.T) {
	for s, want := range map[string][16]byte{"10.0.0.1": {12: 10, 15: 1}, "2001:db8::1": {0x20, 1, 0xd, 0xb8, 15: 1}} {
		ip := netip.MustParseAddr(s)
		q, o := Find(ip), Offer(ip, 2, ib.GID{15: 4}, 0xffff, 60)
		r, err := mad.ParseServiceRecord(q.Data)
		if err != nil || [16]byte(r.Data[:16]) != want || string(r.Name[:len(atsName)]) != atsName {
			t.Errorf("the request for %s has %+v, %v", s, r, err)
		}
		r, err = mad.ParseServiceRecord(o.Data)
		if err != nil || [16]byte(r.Data[:16]) != want || r.ID != 0x10000ce102415453 || r.GID != (ib.GID{15: 4}) || r.Lease != 60 {
			t.Errorf("the offer of %s has %+v, %v", s, r, err)
		}
	}
}

func TestConfig(t *testing.T) {
	for _, cfg := range []Config{{Timeout: -1}, {Retries: -1}, {Retries: 1001}} {
		if _, err := New(cfg); err == nil {
			t.Errorf("%+v is accepted", cfg)
		}
	}
}
