package verbs_test

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/softvpi/softvpi/internal/testbed"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/verbs"
)

// Programs that open a domain by one file share it: one of them has the connection, others have SRQs that it is good for,
// and a target that several have open lasts until the last has closed it, or died.
func TestXRCDomainOfPrograms(t *testing.T) {
	addrs := testbed.Addrs()
	socket := testbed.Socket(t, addrs)
	program := func(side int) (*verbs.Host, *verbs.Device) {
		h := must(verbs.Open(testbed.Context(t), verbs.Options{Mode: verbs.Attached, Socket: socket}))(t)
		return h, must(h.DeviceByAddr(addrs[side]))(t)
	}
	file := must(os.Create(filepath.Join(t.TempDir(), "domain")))(t)
	defer file.Close()

	first, d1 := program(0)
	second, d2 := program(0)
	defer second.Close()
	third, d3 := program(1)
	defer third.Close()

	_, err := d2.OpenXRCDomain(verbs.XRCDomainConfig{File: file, Existing: true})
	wantErr(t, err, verbs.ErrNotFound)
	x1 := must(d1.OpenXRCDomain(verbs.XRCDomainConfig{File: file, Exclusive: true}))(t)
	_, err = d2.OpenXRCDomain(verbs.XRCDomainConfig{File: file, Exclusive: true})
	wantErr(t, err, verbs.ErrInUse)
	x2 := must(d2.OpenXRCDomain(verbs.XRCDomainConfig{File: file, Existing: true}))(t)

	target := must(x1.CreateTarget(1))(t)
	sender := newXRCReceiver(t, d3, must(d3.OpenXRCDomain(verbs.XRCDomainConfig{}))(t))
	initiator := must(sender.pd.CreateQP(verbs.QPConfig{Type: verbs.XRCInitiator, SendCQ: sender.cq, SendDepth: 16}))(t)
	joinXRC(t, initiator, target, d3, d1)
	receiver := newXRCReceiver(t, d2, x2)
	send := func(want verbs.Status) {
		t.Helper()
		ok(t, initiator.PostSend(&verbs.SendWR{Op: verbs.OpSend, Flags: verbs.Signaled, RemoteSRQ: receiver.srq.Number(),
			SGE: []verbs.SGE{sender.mr.SGE(0, 100)}}))
		if wc := nextOf(t, sender.cq); wc.Status != want {
			t.Errorf("a send ends with %v, want %v", wc.Status, want)
		}
	}
	receive := func(id uint64) {
		t.Helper()
		if wc := nextOf(t, receiver.cq); wc.ID != id || wc.QPN != target.Number() || wc.Status != verbs.Success {
			t.Errorf("completion %+v, want that of receive %d", wc, id)
		}
	}
	receiver.post(t, 1)
	send(verbs.Success)
	receive(1)

	opened := must(x2.OpenTarget(target.Number(), 2))(t)
	if info := must(opened.Query())(t); info.State != verbs.StateRTS || info.DestQPN != initiator.Number() {
		t.Errorf("the target as another program sees it: %+v", info)
	}
	ok(t, first.Close()) // without closing anything, as a program that dies
	receiver.post(t, 2)
	send(verbs.Success)
	receive(2)

	wantErr(t, x2.Close(), verbs.ErrBusy)
	ok(t, opened.Close())
	ok(t, receiver.srq.Close())
	ok(t, x2.Close())
	await.Eventually(t, "the domain ends when the driver has noticed that its first program is gone", func() bool {
		x, err := d2.OpenXRCDomain(verbs.XRCDomainConfig{File: file, Existing: true})
		if err == nil {
			ok(t, x.Close())
		}
		return errors.Is(err, verbs.ErrNotFound)
	})
}

// A connection that the connection manager has made with a target lasts while any program has the target open, whichever of
// them accepted, and ends with its id.
func TestXRCConnectionOfPrograms(t *testing.T) {
	for _, c := range []struct {
		name     string
		accepter int // whose handle of the target the answer names: the creator's or the other's
	}{{"accepted by the creator", 0}, {"accepted by another", 1}} {
		t.Run(c.name, func(t *testing.T) {
			addrs := testbed.Addrs()
			socket := testbed.Socket(t, addrs)
			ctx := testbed.Context(t)
			file := must(os.Create(filepath.Join(t.TempDir(), "domain")))(t)
			defer file.Close()
			var domains [2]*verbs.XRCDomain
			var devices [2]*verbs.Device
			for i := range domains {
				h := must(verbs.Open(ctx, verbs.Options{Mode: verbs.Attached, Socket: socket}))(t)
				defer h.Close()
				devices[i] = must(h.DeviceByAddr(addrs[0]))(t)
				domains[i] = must(devices[i].OpenXRCDomain(verbs.XRCDomainConfig{File: file}))(t)
			}
			client := must(verbs.Open(ctx, verbs.Options{Mode: verbs.Attached, Socket: socket}))(t)
			defer client.Close()
			here := must(client.DeviceByAddr(addrs[1]))(t)
			sender := newXRCReceiver(t, here, must(here.OpenXRCDomain(verbs.XRCDomainConfig{}))(t))
			receiver := newXRCReceiver(t, devices[1], domains[1])

			created := must(domains[0].CreateTarget(1))(t)
			handles := [2]*verbs.QP{created, must(domains[1].OpenTarget(created.Number(), 2))(t)}
			e := xrcEnds{target: created,
				initiator: must(sender.pd.CreateQP(verbs.QPConfig{Type: verbs.XRCInitiator, SendCQ: sender.cq, SendDepth: 16}))(t)}
			l := must(devices[c.accepter].ListenXRC(netip.AddrPortFrom(addrs[0], 0), 0))(t)
			e.active = must(here.NewXRCID())(t)
			done := make(chan error, 1)
			go func() {
				err := e.active.Connect(ctx, l.Addr(), e.initiator, param)
				if err == nil {
					err = e.active.Establish()
				}
				done <- err
			}()
			e.passive = must(l.Request(ctx))(t)
			ok(t, e.passive.Accept(ctx, handles[c.accepter], param))
			ok(t, <-done)
			e.post(t, sender, receiver, "both have it")

			ok(t, handles[0].Close()) // the first handle of the target, by which the driver knew it
			e.post(t, sender, receiver, "one has it")
			if err := e.active.Err(); err != nil {
				t.Fatalf("the connection ended with the first handle: %v", err)
			}
			ok(t, e.passive.Close())
			<-e.active.Disconnected()
			if info := must(handles[1].Query())(t); info.State != verbs.StateError {
				t.Errorf("the target of a connection that has ended is in state %v", info.State)
			}
			ok(t, handles[1].Close())
		})
	}
}
