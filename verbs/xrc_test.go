package verbs_test

import (
	"testing"

	"github.com/softvpi/softvpi/internal/testbed"
	"github.com/softvpi/softvpi/verbs"
)

// joinXRC connects an initiator with a target by hand.
func joinXRC(t testing.TB, initiator, target *verbs.QP, from, to *verbs.Device) {
	t.Helper()
	const connects = verbs.MaskState | verbs.MaskAV | verbs.MaskMTU | verbs.MaskDestQPN | verbs.MaskRQPSN
	for _, q := range []*verbs.QP{initiator, target} {
		ok(t, q.Modify(verbs.QPAttr{State: verbs.StateInit, Access: everything &^ verbs.WindowBind},
			verbs.MaskState|verbs.MaskPKeyIndex|verbs.MaskAccess))
	}
	ok(t, target.Modify(verbs.QPAttr{
		State: verbs.StateRTR, AV: verbs.AddressVector{Addr: from.Addr()}, MTU: 1024, DestQPN: initiator.Number(), RQPSN: 7,
		ResponderResources: 4, MinRNRTimer: 1,
	}, connects|verbs.MaskResponderResources|verbs.MaskMinRNRTimer))
	ok(t, initiator.Modify(verbs.QPAttr{
		State: verbs.StateRTR, AV: verbs.AddressVector{Addr: to.Addr()}, MTU: 1024, DestQPN: target.Number(), RQPSN: 9,
	}, connects))
	ok(t, initiator.Modify(verbs.QPAttr{State: verbs.StateRTS, SQPSN: 7, Timeout: 14, Retry: 7, RNRRetry: 7, InitiatorDepth: 4},
		verbs.MaskState|verbs.MaskSQPSN|verbs.MaskTimeout|verbs.MaskRetry|verbs.MaskRNRRetry|verbs.MaskInitiatorDepth))
	ok(t, target.Modify(verbs.QPAttr{State: verbs.StateRTS, SQPSN: 9, Timeout: 14}, verbs.MaskState|verbs.MaskSQPSN|verbs.MaskTimeout))
}

// xrcReceiver is a program's part in a domain: an SRQ with a CQ of its own.
type xrcReceiver struct {
	domain *verbs.XRCDomain
	pd     *verbs.PD
	cq     *verbs.CQ
	mr     *verbs.MR
	srq    *verbs.SRQ
}

func newXRCReceiver(t testing.TB, d *verbs.Device, domain *verbs.XRCDomain) *xrcReceiver {
	t.Helper()
	r := &xrcReceiver{domain: domain}
	r.pd = must(d.AllocPD())(t)
	r.cq = must(d.CreateCQ(64))(t)
	r.mr = must(r.pd.Allocate(memory, everything))(t)
	r.srq = must(r.pd.CreateSRQ(verbs.SRQConfig{Depth: 16, XRC: domain, CQ: r.cq}))(t)
	return r
}

func (r *xrcReceiver) close(t testing.TB) {
	t.Helper()
	ok(t, r.srq.Close())
	ok(t, r.mr.Deregister())
	ok(t, r.cq.Close())
	ok(t, r.pd.Close())
}

func (r *xrcReceiver) post(t testing.TB, id uint64) {
	t.Helper()
	ok(t, r.srq.PostRecv(&verbs.RecvWR{ID: id, SGE: []verbs.SGE{r.mr.SGE(0, 4096)}}))
}

func nextOf(t testing.TB, cq *verbs.CQ) verbs.WC {
	t.Helper()
	var wc [1]verbs.WC
	if _, err := cq.Next(testbed.Context(t), wc[:]); err != nil {
		t.Fatal(err)
	}
	return wc[0]
}

// An initiator reaches, through one target, every SRQ of the target's domain; where a message completes, and which keys hold,
// is the SRQ's matter (IBA annex A14).
func TestXRC(t *testing.T) {
	testbed.Each(t, func(t *testing.T, b *testbed.Bed) {
		here, there := b.Device(t, 1), b.Device(t, 0)
		domain := must(there.OpenXRCDomain(verbs.XRCDomainConfig{}))(t)
		one, other := newXRCReceiver(t, there, domain), newXRCReceiver(t, there, domain)
		target := must(domain.CreateTarget(5))(t)
		sender := newXRCReceiver(t, here, must(here.OpenXRCDomain(verbs.XRCDomainConfig{}))(t))
		initiator := must(sender.pd.CreateQP(verbs.QPConfig{Type: verbs.XRCInitiator, SendCQ: sender.cq, SendDepth: 16}))(t)
		joinXRC(t, initiator, target, here, there)

		do := func(wr verbs.SendWR, want verbs.Status) {
			t.Helper()
			wr.Flags = verbs.Signaled
			wr.SGE = []verbs.SGE{sender.mr.SGE(0, 8)}
			ok(t, initiator.PostSend(&wr))
			if wc := nextOf(t, sender.cq); wc.Status != want {
				t.Fatalf("%v ends with %v, want %v", wr.Op, wc.Status, want)
			}
		}
		for i, r := range []*xrcReceiver{one, other, one} {
			r.post(t, uint64(10+i))
			copy(sender.mr.Bytes(), "message ")
			sender.mr.Bytes()[7] = byte(i)
			do(verbs.SendWR{Op: verbs.OpSendImm, Imm: 77, RemoteSRQ: r.srq.Number()}, verbs.Success)
			wc := nextOf(t, r.cq)
			if wc.ID != uint64(10+i) || wc.Status != verbs.Success || wc.ByteLen != 8 || wc.Imm != 77 || wc.QPN != target.Number() {
				t.Errorf("completion %+v in the SRQ's queue", wc)
			}
			if got := r.mr.Bytes()[7]; got != byte(i) {
				t.Errorf("message %d is %d", i, got)
			}
		}
		do(verbs.SendWR{Op: verbs.OpWrite, RemoteAddr: other.mr.RemoteAddr(), RKey: other.mr.RKey(), RemoteSRQ: other.srq.Number()},
			verbs.Success)
		do(verbs.SendWR{Op: verbs.OpRead, RemoteAddr: other.mr.RemoteAddr(), RKey: other.mr.RKey(), RemoteSRQ: other.srq.Number()},
			verbs.Success)
		do(verbs.SendWR{
			Op: verbs.OpFetchAdd, Add: 1, RemoteAddr: other.mr.RemoteAddr(), RKey: other.mr.RKey(), RemoteSRQ: other.srq.Number(),
		}, verbs.Success)

		wantErr(t, domain.Close(), verbs.ErrBusy)
		wantErr(t, one.cq.Close(), verbs.ErrBusy)
		wantErr(t, target.PostSend(&verbs.SendWR{Op: verbs.OpSend}), verbs.ErrState)
		wantErr(t, target.PostRecv(&verbs.RecvWR{}), verbs.ErrState)
		wantErr(t, initiator.PostRecv(&verbs.RecvWR{}), verbs.ErrState)

		// A region is of a protection domain, and so of the SRQs with that one.
		do(verbs.SendWR{Op: verbs.OpWrite, RemoteAddr: other.mr.RemoteAddr(), RKey: other.mr.RKey(), RemoteSRQ: one.srq.Number()},
			verbs.RemoteAccess)
		ok(t, initiator.Close())
		ok(t, target.Close())
		for _, r := range []*xrcReceiver{one, other, sender} {
			r.close(t)
		}
		ok(t, sender.domain.Close())
		ok(t, domain.Close())
	})
}

// A message for an SRQ that has gone, or was never one of the domain, is refused, and ends the connection.
func TestXRCWithoutQueue(t *testing.T) {
	testbed.Each(t, func(t *testing.T, b *testbed.Bed) {
		here, there := b.Device(t, 1), b.Device(t, 0)
		domain := must(there.OpenXRCDomain(verbs.XRCDomainConfig{}))(t)
		elsewhere := must(there.OpenXRCDomain(verbs.XRCDomainConfig{}))(t)
		stranger, gone := newXRCReceiver(t, there, elsewhere), newXRCReceiver(t, there, domain)
		number := gone.srq.Number()
		gone.close(t)
		sender := newXRCReceiver(t, here, must(here.OpenXRCDomain(verbs.XRCDomainConfig{}))(t))
		for _, number := range []uint32{number, stranger.srq.Number(), 0xffffff} {
			target := must(domain.CreateTarget(5))(t)
			initiator := must(sender.pd.CreateQP(verbs.QPConfig{Type: verbs.XRCInitiator, SendCQ: sender.cq, SendDepth: 16}))(t)
			joinXRC(t, initiator, target, here, there)
			ok(t, initiator.PostSend(&verbs.SendWR{Op: verbs.OpSend, Flags: verbs.Signaled, RemoteSRQ: number}))
			if wc := nextOf(t, sender.cq); wc.Status != verbs.RemoteInvalidRequest {
				t.Errorf("a message for SRQ %#x ends with %v", number, wc.Status)
			}
			ok(t, initiator.Close())
			ok(t, target.Close())
		}
		stranger.close(t)
		sender.close(t)
		for _, d := range []*verbs.XRCDomain{domain, elsewhere, sender.domain} {
			ok(t, d.Close())
		}
	})
}

// What makes no sense is refused with the name of the field.
func TestXRCRefused(t *testing.T) {
	testbed.Each(t, func(t *testing.T, b *testbed.Bed) {
		d := b.Device(t, 0)
		domain := must(d.OpenXRCDomain(verbs.XRCDomainConfig{}))(t)
		pd, cq := must(d.AllocPD())(t), must(d.CreateCQ(8))(t)
		_, err := d.OpenXRCDomain(verbs.XRCDomainConfig{Existing: true})
		wantErr(t, err, verbs.ErrNotFound)
		_, err = pd.CreateSRQ(verbs.SRQConfig{Depth: 1, XRC: domain})
		wantErr(t, err, verbs.ErrInvalid)
		_, err = pd.CreateSRQ(verbs.SRQConfig{Depth: 1, CQ: cq})
		wantErr(t, err, verbs.ErrInvalid)
		_, err = pd.CreateQP(verbs.QPConfig{Type: verbs.XRCTarget, SendCQ: cq, RecvCQ: cq})
		wantErr(t, err, verbs.ErrInvalid)
		_, err = pd.CreateQP(verbs.QPConfig{Type: verbs.XRCInitiator, SendCQ: cq, RecvCQ: cq})
		wantErr(t, err, verbs.ErrInvalid)
		_, err = domain.OpenTarget(99, 0)
		wantErr(t, err, verbs.ErrNotFound)
		plain := must(pd.CreateQP(verbs.QPConfig{SendCQ: cq, RecvCQ: cq}))(t)
		_, err = domain.OpenTarget(plain.Number(), 0)
		wantErr(t, err, verbs.ErrNotFound)
		ok(t, plain.Close())
		ok(t, cq.Close())
		ok(t, pd.Close())
		ok(t, domain.Close())
	})
}
