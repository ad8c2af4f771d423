package verbs_test

import (
	"net/netip"
	"testing"

	"github.com/softvpi/softvpi/internal/testbed"
	"github.com/softvpi/softvpi/verbs"
)

const grh = 40 // bytes before the data of a received datagram

// ready moves an unconnected QP to ready-to-send by hand (IBA 11.2.5.2).
func (s *side) ready(t testing.TB, qkey uint32) {
	t.Helper()
	ok(t, s.qp.Modify(verbs.QPAttr{State: verbs.StateInit, QKey: qkey}, verbs.MaskState|verbs.MaskPKeyIndex|verbs.MaskQKey))
	ok(t, s.qp.Modify(verbs.QPAttr{State: verbs.StateRTR}, verbs.MaskState))
	ok(t, s.qp.Modify(verbs.QPAttr{State: verbs.StateRTS, SQPSN: 0x1000}, verbs.MaskState|verbs.MaskSQPSN))
}

func TestDatagrams(t *testing.T) {
	testbed.Each(t, func(t *testing.T, b *testbed.Bed) {
		server, client := newSide(t, b, 0, verbs.UD), newSide(t, b, 1, verbs.UD)
		server.ready(t, 0x1234)
		client.ready(t, 0x1234)
		ah := must(client.pd.CreateAH(verbs.AddressVector{Addr: server.dev.Addr()}))(t)
		defer ah.Close()
		copy(client.mr.Bytes(), "datagram")
		send := verbs.SendWR{Op: verbs.OpSendImm, Imm: 5, SGE: []verbs.SGE{client.mr.SGE(0, 8)}, AH: ah, RemoteQPN: server.qp.Number(),
			RemoteQKey: 0x1234}

		server.recv(t, 1, server.mr.SGE(0, 4096+grh))
		wrong := send
		wrong.RemoteQKey = 0x4321 // dropped because of the wrong Q_Key
		client.send(t, wrong)
		client.want(t, verbs.CompletedSend, verbs.Success)
		client.send(t, send)
		client.want(t, verbs.CompletedSend, verbs.Success)
		wc := server.want(t, verbs.CompletedRecv, verbs.Success)
		if wc.SrcQP != client.qp.Number() || wc.ByteLen != grh+8 || wc.Imm != 5 || wc.Flags&verbs.WithGRH == 0 {
			t.Errorf("completion is %+v, want %d bytes with GRH from QP %#x", wc, grh+8, client.qp.Number())
		}
		if got := string(server.mr.Bytes()[grh : grh+8]); got != "datagram" {
			t.Errorf("received %q", got)
		}
		// The last 20 bytes of the space for the GRH contain an IPv4 header.
		ip := server.mr.Bytes()[20:40]
		if src := netip.AddrFrom4([4]byte(ip[12:16])); ip[0] != 0x45 || src != client.dev.Addr() {
			t.Errorf("IPv4 header % x, want one from %v", ip, client.dev.Addr())
		}
		wantErr(t, client.qp.PostSend(&verbs.SendWR{Op: verbs.OpSend}), verbs.ErrInvalid)
		wantErr(t, client.qp.PostSend(&verbs.SendWR{Op: verbs.OpWrite, AH: ah}), verbs.ErrInvalid)
	})
}

func TestResolveDatagramService(t *testing.T) {
	testbed.Each(t, func(t *testing.T, b *testbed.Bed) {
		ctx := testbed.Context(t)
		server := newSide(t, b, 0, verbs.UD)
		server.ready(t, 0x77)
		l := must(server.dev.ListenService(netip.AddrPortFrom(server.dev.Addr(), 0), 0))(t)
		defer l.Close()
		answered := make(chan error, 1)
		go func() {
			id, err := l.Request(ctx)
			if err == nil {
				if got := string(id.Peer().Private[:5]); got != "where" {
					t.Errorf("private data is %q", got)
				}
				err = id.Accept(ctx, server.qp, verbs.ConnParam{QKey: 0x77, Private: []byte("here")})
				defer id.Close()
			}
			answered <- err
		}()
		id := must(b.Device(t, 1).NewServiceID())(t)
		defer id.Close()
		peer := must(id.Resolve(ctx, l.Addr(), []byte("where")))(t)
		ok(t, <-answered)
		if peer.QPN != server.qp.Number() || peer.QKey != 0x77 || string(peer.Private[:4]) != "here" {
			t.Errorf("resolved QP %#x, Q_Key %#x, %q, want %#x, 0x77, here", peer.QPN, peer.QKey, peer.Private[:4], server.qp.Number())
		}
	})
}

func TestMulticast(t *testing.T) {
	testbed.Each(t, func(t *testing.T, b *testbed.Bed) {
		server, client := newSide(t, b, 0, verbs.UD), newSide(t, b, 1, verbs.UD)
		server.ready(t, 9)
		client.ready(t, 9)
		group := netip.AddrFrom4([4]byte{239, 1, server.dev.Addr().As4()[2], server.dev.Addr().As4()[3]})
		wantErr(t, server.qp.JoinMulticast(netip.MustParseAddr("10.0.0.1")), verbs.ErrInvalid)
		if err := server.qp.JoinMulticast(group); err != nil {
			t.Skipf("joining %v: %v", group, err)
		}
		ah := must(client.pd.CreateAH(verbs.AddressVector{Addr: group}))(t)
		defer ah.Close()
		server.recv(t, 1, server.mr.SGE(0, 1024))
		copy(client.mr.Bytes(), "to all")
		client.send(t, verbs.SendWR{Op: verbs.OpSend, SGE: []verbs.SGE{client.mr.SGE(0, 6)}, AH: ah, RemoteQPN: 0xffffff, RemoteQKey: 9})
		client.want(t, verbs.CompletedSend, verbs.Success)
		server.want(t, verbs.CompletedRecv, verbs.Success)
		if got := string(server.mr.Bytes()[grh : grh+6]); got != "to all" {
			t.Errorf("received %q", got)
		}
		ok(t, server.qp.LeaveMulticast(group))
	})
}

// joinByHand connects two QPs without the connection manager.
func joinByHand(t testing.TB, a, b *side, rate uint8) {
	t.Helper()
	const access = verbs.RemoteWrite | verbs.RemoteRead
	for _, p := range [][2]*side{{a, b}, {b, a}} {
		s, peer := p[0], p[1]
		rc := s.qp.Config().Type == verbs.RC
		ok(t, s.qp.Modify(verbs.QPAttr{State: verbs.StateInit, Access: access}, verbs.MaskState|verbs.MaskPKeyIndex|verbs.MaskAccess))
		mask := verbs.MaskState | verbs.MaskAV | verbs.MaskMTU | verbs.MaskDestQPN | verbs.MaskRQPSN
		if rc {
			mask |= verbs.MaskResponderResources | verbs.MaskMinRNRTimer
		}
		ok(t, s.qp.Modify(verbs.QPAttr{
			State: verbs.StateRTR, AV: verbs.AddressVector{Addr: peer.dev.Addr(), StaticRate: rate}, MTU: 1024,
			DestQPN: peer.qp.Number(), RQPSN: 0xfffff0, ResponderResources: 4, MinRNRTimer: 12,
		}, mask))
		mask = verbs.MaskState | verbs.MaskSQPSN
		if rc {
			mask |= verbs.MaskTimeout | verbs.MaskRetry | verbs.MaskRNRRetry | verbs.MaskInitiatorDepth
		}
		ok(t, s.qp.Modify(verbs.QPAttr{State: verbs.StateRTS, SQPSN: 0xfffff0, Timeout: 14, Retry: 7, RNRRetry: 7, InitiatorDepth: 4},
			mask))
	}
}

// RC and UC between QPs that the program has moved through their states itself, with PSNs that wrap.
func TestConnectionsByHand(t *testing.T) {
	testbed.Each(t, func(t *testing.T, b *testbed.Bed) {
		for _, c := range []struct {
			typ  verbs.QPType
			rate uint8 // static; with one they use packets
		}{{verbs.RC, 0}, {verbs.UC, 0}, {verbs.RC, 16}} {
			typ := c.typ
			server, client := newSide(t, b, 0, typ), newSide(t, b, 1, typ)
			joinByHand(t, server, client, c.rate)
			if x := must(client.qp.Query())(t); x.AV.StaticRate != c.rate || c.rate != 0 && x.Path != verbs.PathWire {
				t.Errorf("the path has a rate of code %d, want %d, and is %v", x.AV.StaticRate, c.rate, x.Path)
			}
			copy(client.mr.Bytes(), "by hand")
			for i := range 20 {
				server.recv(t, uint64(i), server.mr.SGE(100, 7))
				client.send(t, verbs.SendWR{Op: verbs.OpSend, SGE: []verbs.SGE{client.mr.SGE(0, 7)}})
				client.want(t, verbs.CompletedSend, verbs.Success)
				server.want(t, verbs.CompletedRecv, verbs.Success)
			}
			server.recv(t, 30)
			client.send(t, verbs.SendWR{Op: verbs.OpWriteImm, SGE: []verbs.SGE{client.mr.SGE(0, 5000)}, RemoteAddr: server.mr.RemoteAddr(),
				RKey: server.mr.RKey()})
			client.want(t, verbs.CompletedWrite, verbs.Success)
			server.want(t, verbs.CompletedRecvWrite, verbs.Success)
			if got := string(server.mr.Bytes()[:7]); got != "by hand" {
				t.Errorf("%v: wrote %q", typ, got)
			}
			if typ == verbs.UC {
				wantErr(t, client.qp.PostSend(&verbs.SendWR{Op: verbs.OpRead, SGE: []verbs.SGE{client.mr.SGE(0, 8)}}), verbs.ErrInvalid)
			}
		}
	})
}
