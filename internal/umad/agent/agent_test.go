package agent

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

func (w *wire) register(t testing.TB, i int, r Registration) uint32 {
	t.Helper()
	id, err := w.file[i].Register(r)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func administration(methods ...uint8) Registration {
	r := Registration{QPN: 1, Class: mad.ClassSubnetAdm, Version: 2, RMPP: 1}
	for _, m := range methods {
		r.Methods[m/64] |= 1 << (m % 64)
	}
	return r
}

func message(agent uint32, class, method uint8, tid uint32, to ib.LID, timeout time.Duration, retries uint32) *Message {
	m := &Message{Header: Header{Agent: agent, LID: to, QPN: 1, Timeout: uint32(timeout / time.Millisecond), Retries: retries},
		Data: make([]byte, mad.Len)}
	h := mad.Header{BaseVersion: 1, Class: class, ClassVersion: 1, Method: method, TransactionID: uint64(tid), AttributeID: 0x11}
	if class == mad.ClassSubnetAdm {
		h.ClassVersion = 2
	}
	h.Append(m.Data[:0])
	return m
}

func (w *wire) send(t testing.TB, i int, m *Message) {
	t.Helper()
	if err := w.file[i].Send(w.net.Now(), m); err != nil {
		t.Fatal(err)
	}
	w.flow()
}

// reply returns a program's answer to a message.
func reply(agent uint32, q *Message, method uint8, data []byte) *Message {
	m := &Message{Header: Header{Agent: agent, LID: q.LID, QPN: q.QPN}, Data: data}
	copy(m.Data, q.Data[:mad.HeaderLen])
	m.Data[3] = method
	return m
}

// TestRegistrations: a registration is refused where the kernel refuses it.
func TestRegistrations(t *testing.T) {
	all := [2]uint64{1 << 1, 0}
	for _, c := range []struct {
		name  string
		r     Registration
		field string
	}{
		{"queue pair 2", Registration{QPN: 2}, "queue pair"},
		{"RMPP 2", Registration{QPN: 1, RMPP: 2}, "RMPP version"},
		{"class 0x50", Registration{QPN: 1, Class: 0x50}, "management class"},
		{"subnet management on queue pair 1", Registration{QPN: 1, Class: 0x81, Version: 1}, "management class"},
		{"administration on queue pair 0", Registration{Class: 3, Version: 2}, "management class"},
		{"RMPP of a class without", Registration{QPN: 1, Class: 4, Version: 1, RMPP: 1}, "RMPP version"},
		{"vendor class without OUI", Registration{QPN: 1, Class: 0x30, Version: 1}, "OUI"},
		{"version", Registration{QPN: 1, Class: 4, Version: 0x83}, "class version"},
		{"method of another agent", Registration{QPN: 1, Class: 9, Version: 1, Methods: all}, "method"},
		{"the same of another version", Registration{QPN: 1, Class: 9, Version: 2, Methods: all}, ""},
		{"the same without methods", Registration{QPN: 1, Class: 9, Version: 1}, ""},
		{"vendor class of another OUI", Registration{QPN: 1, Class: 0x32, Version: 1, OUI: 2, Methods: all}, ""},
		{"only to send", Registration{QPN: 1}, ""},
	} {
		w := newWire()
		w.register(t, 0, Registration{QPN: 1, Class: 9, Version: 1, Methods: all})
		w.register(t, 0, Registration{QPN: 1, Class: 0x32, Version: 1, OUI: 1, Methods: all})
		_, err := w.file[0].Register(c.r)
		var e *RegistrationError
		if got := errors.As(err, &e); got != (c.field != "") || got && e.Field != c.field {
			t.Errorf("%s: %v, want an error about the field %q", c.name, err, c.field)
		}
	}
	w := newWire()
	for range MaxAgents {
		w.register(t, 0, Registration{QPN: 1})
	}
	if _, err := w.file[0].Register(Registration{QPN: 1}); err == nil {
		t.Error("a 33rd agent was registered")
	}
	if !w.file[0].Unregister(7) || w.file[0].Unregister(7) || w.file[0].Unregister(99) {
		t.Error("an agent can be unregistered other than once")
	}
	if id := w.register(t, 0, Registration{QPN: 1}); id != 7 {
		t.Errorf("the new agent has number %d, want 7, which is free", id)
	}
	w.file[0].Close()
	if !w.port[0].Quiet() {
		t.Error("agents are left after their file was closed")
	}
}

// TestResponsesFindTheirAgent: a request goes to the agent for its class and method, and the response to the one that
// asked, also if several have the class.
func TestResponsesFindTheirAgent(t *testing.T) {
	w := newWire()
	server := w.register(t, 1, administration(mad.MethodGet))
	w.register(t, 0, administration()) // another one, which must get nothing
	asking := w.register(t, 0, administration())
	w.send(t, 0, message(asking, mad.ClassSubnetAdm, mad.MethodGet, 7, 2, time.Second, 0))
	if len(w.got[1]) != 1 || w.got[1][0].Agent != server || w.got[1][0].LID != 1 || w.got[1][0].Length != 320 {
		t.Fatalf("the server received %+v, want the request from LID 1", w.got[1])
	}
	q := &w.got[1][0]
	w.send(t, 1, reply(server, q, mad.MethodGetResp, make([]byte, mad.Len)))
	if len(w.got[0]) != 1 || w.got[0][0].Agent != asking || w.got[0][0].Status != 0 || binary.BigEndian.Uint32(w.got[0][0].Data[12:]) != 7 {
		t.Fatalf("the client received %+v, want the answer to transaction 7", w.got[0])
	}
	w.send(t, 1, reply(server, q, mad.MethodGetResp, make([]byte, mad.Len)))
	w.until(time.Minute)
	if len(w.got[0]) != 1 {
		t.Error("an answer that came twice was delivered twice")
	}
}

// TestTimeOuts: an unanswered request is sent again once per retry, then returned with ETIMEDOUT.
func TestTimeOuts(t *testing.T) {
	w := newWire()
	id := w.register(t, 0, administration())
	w.send(t, 0, message(id, mad.ClassSubnetAdm, mad.MethodGet, 7, 9, 100*time.Millisecond, 2))
	w.until(time.Minute)
	if w.sent != 3 || len(w.got[0]) != 1 {
		t.Fatalf("sent %d times, %d came back; want 3 and 1", w.sent, len(w.got[0]))
	}
	m := w.got[0][0]
	if m.Status != timedOut || m.Length != HeaderLen+mad.HeaderLen || len(m.Data) != mad.HeaderLen ||
		binary.BigEndian.Uint32(m.Data[12:]) != 7 {
		t.Errorf("received %+v, want the request back as timed out", m)
	}
	// A MAD that expects no response is forgotten at once.
	w.send(t, 0, message(id, mad.ClassSubnetAdm, mad.MethodGet, 8, 9, 0, 2))
	w.until(time.Minute)
	if w.sent != 4 || len(w.got[0]) != 1 || w.port[0].Deadline() != clock.Never {
		t.Error("a MAD without a time-out was waited for")
	}
}

func TestSendErrors(t *testing.T) {
	w := newWire()
	id := w.register(t, 0, administration())
	for name, m := range map[string]*Message{
		"agent":          message(id+1, 3, 1, 1, 2, 0, 0),
		"length":         {Header: Header{Agent: id}, Data: make([]byte, 20)},
		"transaction ID": message(id, 3, 1, 1, 9, time.Second, 0),
	} {
		if name == "transaction ID" {
			w.send(t, 0, message(id, 3, 1, 1, 9, time.Second, 0))
		}
		var e *sendError
		if err := w.file[0].Send(w.net.Now(), m); !errors.As(err, &e) || e.Field != name {
			t.Errorf("%s: %v, want an error about this field", name, err)
		}
	}
	long := &Message{Header: Header{Agent: id}, Data: make([]byte, 300)}
	long.Data[1] = 3
	if err := w.file[0].Send(w.net.Now(), long); err == nil {
		t.Error("300 bytes were sent without RMPP")
	}
}

// table returns a response with n bytes of records and the flag that makes it a transfer.
func table(n int) []byte {
	b := make([]byte, 56+n)
	for i := range n {
		b[56+i] = byte(i*7 + i>>8)
	}
	b[24], b[25], b[26] = 1, 1, 1
	return b
}

// TestTransfersSurviveLoss: a transfer arrives as it was sent, whichever packets are lost, unless too many are (IBA
// 13.6).
func TestTransfersSurviveLoss(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		w := newWire()
		server := w.register(t, 1, administration(mad.MethodGetTable))
		asking := w.register(t, 0, administration())
		w.send(t, 0, message(asking, mad.ClassSubnetAdm, mad.MethodGetTable, 7, 2, 30*time.Second, 0))
		n := rapid.OneOf(rapid.IntRange(0, 900), rapid.IntRange(0, 40000)).Draw(r, "length")
		lost := rapid.SliceOfNDistinct(rapid.IntRange(2, 400), 0, 20, rapid.ID[int]).Draw(r, "lost")
		w.lose = func(k int, _ *Packet) bool {
			for _, l := range lost {
				if l == k {
					return true
				}
			}
			return false
		}
		data := table(n)
		m := reply(server, &w.got[1][0], 0x92, data)
		m.Retries = 30
		w.send(t, 1, m)
		w.until(5 * time.Minute)
		if len(w.got[0]) != 1 || w.got[0][0].Status != 0 {
			r.Fatalf("%d messages", len(w.got[0]))
		}
		got := w.got[0][0].Data
		// A single packet does not say where the records in the last segment end.
		if !bytes.Equal(got[56:], data[56:]) {
			r.Fatalf("%d bytes came, %d were sent", len(got), len(data))
		}
		if len(w.got[1]) != 1 {
			r.Fatalf("the sender was told %+v", w.got[1][1:])
		}
	})
}

// TestTransfersInBothDirections: a request of several packets is answered by a transfer, and the other end is told
// when it may begin (IBA 13.6.6.3).
func TestTransfersInBothDirections(t *testing.T) {
	w := newWire()
	server := w.register(t, 1, administration(mad.MethodGetMulti))
	asking := w.register(t, 0, administration())
	m := message(asking, mad.ClassSubnetAdm, mad.MethodGetMulti, 7, 2, time.Second, 3)
	q := table(1000)
	copy(q, m.Data[:mad.HeaderLen])
	m.Data = q
	turned := false
	w.lose = func(_ int, k *Packet) bool {
		turned = turned || k.MAD[25] == mad.RMPPAck && be32(k.MAD[28:]) == 0 && k.MAD[3] == mad.MethodGetMulti
		return false
	}
	w.send(t, 0, m)
	if len(w.got[1]) != 1 || !bytes.Equal(w.got[1][0].Data[56:], q[56:]) || !turned {
		t.Fatalf("the request: %d came, turned %v", len(w.got[1]), turned)
	}
	w.send(t, 1, reply(server, &w.got[1][0], 0x94, table(5000)))
	if len(w.got[0]) != 1 || len(w.got[0][0].Data) != 5056 || w.got[0][0].Status != 0 {
		t.Fatalf("the answer: %d came", len(w.got[0]))
	}
}

// TestTransfersEnd: a transfer that is not wanted, that is stopped, or that is not acknowledged, ends.
func TestTransfersEnd(t *testing.T) {
	w := newWire()
	server := w.register(t, 1, administration(mad.MethodGetTable))
	asking := w.register(t, 0, administration())
	w.send(t, 0, message(asking, mad.ClassSubnetAdm, mad.MethodGetTable, 7, 2, time.Second, 0))
	w.until(2 * time.Second) // the requester has given up
	m := reply(server, &w.got[1][0], 0x92, table(5000))
	m.Retries = 3
	w.send(t, 1, m)
	w.until(time.Minute)
	if len(w.got[0]) != 1 || w.got[0][0].Status != timedOut || len(w.file[1].agents[server].sends) != 0 {
		t.Errorf("a late answer: %d, %d", len(w.got[0]), len(w.got[1]))
	}
	w.lose = func(int, *Packet) bool { return true }
	m = reply(server, &w.got[1][0], 0x92, table(5000))
	m.Retries = 3
	sent := w.sent
	w.send(t, 1, m)
	w.until(time.Minute)
	if w.sent-sent != 4 || len(w.got[1]) != 2 || w.got[1][1].Status != timedOut {
		t.Errorf("nobody acknowledges: sent %d times, told %+v", w.sent-sent, w.got[1][1:])
	}
	if w.port[1].Deadline() != clock.Never {
		t.Error("a timer is still running")
	}
}

// TestRawAgents: an agent that matches answers by itself gets all of them.
func TestRawAgents(t *testing.T) {
	w := newWire()
	r := administration()
	r.Raw, r.RMPP = true, 0
	asking := w.register(t, 0, r)
	server := w.register(t, 1, administration(mad.MethodGet))
	w.send(t, 0, message(asking, mad.ClassSubnetAdm, mad.MethodGet, 7, 2, 0, 0))
	for range 2 {
		w.send(t, 1, reply(server, &w.got[1][0], mad.MethodGetResp, make([]byte, mad.Len)))
	}
	if len(w.got[0]) != 2 {
		t.Errorf("the agent got %d answers, want 2", len(w.got[0]))
	}
}

// TestHeader: headers have the layout of ib_user_mad.
func TestHeader(t *testing.T) {
	h := Header{Agent: 1, Status: 2, Timeout: 3, Retries: 4, Length: 5, QPN: 6, QKey: 0x80010000, LID: 0x1234, SL: 7, PathBits: 1,
		HasGRH: true,
		GRH:    GRH{GIDIndex: 2, HopLimit: 3, TrafficClass: 4, GID: ib.GID{0xfe, 0x80, 15: 9}, FlowLabel: 0x12345}, PKeyIndex: 8}
	b := h.Append(nil)
	if len(b) != HeaderLen || ParseHeader(b) != h || b[28] != 0x12 || b[56] != 8 {
		t.Errorf("% x", b)
	}
}

// FuzzReceive: nothing that arrives, and nothing that a program writes, does harm.
func FuzzReceive(f *testing.F) {
	f.Add([]byte{1, 3, 2, 0x12}, uint16(2), uint8(1))
	f.Add(append([]byte{1, 3, 2, 0x92, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 7, 0, 0x11, 0, 0, 0, 0, 0, 0, 1, 1, 3, 0, 0, 0, 0, 1, 0, 0, 0, 200},
		9), uint16(2), uint8(3))
	f.Fuzz(func(t *testing.T, b []byte, lid uint16, n uint8) {
		w := newWire()
		id := w.register(t, 0, administration(mad.MethodGet, mad.MethodGetTable, mad.MethodGetMulti))
		w.send(t, 0, message(id, mad.ClassSubnetAdm, mad.MethodGetTable, 7, 9, time.Second, 1))
		var k Packet
		k.SLID, k.SQP, k.DQP = ib.LID(lid), 1, 1
		copy(k.MAD[:], b)
		for i := range int(n) {
			k.MAD[31] += byte(i & 1)
			c := k
			w.port[0].Receive(w.net.Now(), &c)
		}
		m := Message{Header: Header{Agent: id, Timeout: 10}, Data: b}
		_ = w.file[0].Send(w.net.Now(), &m)
		w.until(time.Minute)
		if w.port[0].Deadline() != clock.Never {
			t.Error("a timer is still running")
		}
	})
}

// TestSendingIsLimited: what the programs of all ports have under way has one limit in bytes, and what has ended counts no
// more.
func TestSendingIsLimited(t *testing.T) {
	w := newWire()
	w.lose = func(int, *Packet) bool { return true }
	var ids [2]uint32
	for i, f := range w.file {
		id, err := f.Register(Registration{QPN: 1, Class: mad.ClassSubnetAdm, Version: 2, RMPP: 1})
		if err != nil {
			t.Fatal(err)
		}
		ids[i] = id
	}
	long := make([]byte, MaxLength)
	long[atClass], long[atMethod], long[atFlags] = mad.ClassSubnetAdm, mad.MethodGetMulti, mad.RMPPActive
	send := func(port int, n uint32) error {
		putBE32(long[atTID+4:], n)
		return w.file[port].Send(w.net.Now(), &Message{Header: Header{Agent: ids[port], LID: 2, QPN: 1, Timeout: 1000}, Data: long})
	}
	for n := range uint32(maxSending / MaxLength) {
		if err := send(int(n%2), n); err != nil {
			t.Fatal(err)
		}
	}
	var e *sendError
	if err := send(0, 100); !errors.As(err, &e) || e.Field != "length" {
		t.Errorf("beyond the limit: %v, want that the length is wrong", err)
	}
	w.file[1].Close()
	if err := send(0, 100); err != nil {
		t.Errorf("after some have ended: %v", err)
	}
}

// TestAcknowledgedByHalves: a long transfer is acknowledged before its window is used up, so that the sender never stands
// still, and not more often than once for each half of it.
func TestAcknowledgedByHalves(t *testing.T) {
	w := newWire()
	server := w.register(t, 1, administration(mad.MethodGetTable))
	asking := w.register(t, 0, administration())
	w.send(t, 0, message(asking, mad.ClassSubnetAdm, mad.MethodGetTable, 7, 2, 30*time.Second, 0))
	const segments = 2000
	acks, sent, granted := 0, uint32(0), uint32(1)
	w.lose = func(_ int, k *Packet) bool {
		switch k.MAD[atRMPP+1] {
		case mad.RMPPData:
			if sent = be32(k.MAD[atData1:]); sent > granted {
				t.Fatalf("segment %d came with a window up to %d", sent, granted)
			}
		case mad.RMPPAck:
			if n := be32(k.MAD[atData1:]); n+window/2 < granted && n > 1 && n < segments {
				t.Errorf("%d was acknowledged with a window up to %d", n, granted)
			}
			acks++
			granted = be32(k.MAD[atData2:])
		}
		return false
	}
	w.send(t, 1, reply(server, &w.got[1][0], 0x92, table(segments*200)))
	if least, most := 2*segments/window-1, 2*segments/window+3; len(w.got[0]) != 1 || acks < least || acks > most {
		t.Errorf("%d messages came with %d acknowledgements, want 1 with %d to %d", len(w.got[0]), acks, least, most)
	}
}
