package verbs_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/testbed"
	"github.com/softvpi/softvpi/verbs"
)

// Every operation of the RC service (IBA table 38), with its data and the fields of its completions.
func TestRCOperations(t *testing.T) {
	testbed.Each(t, func(t *testing.T, b *testbed.Bed) {
		server, client := connected(t, b)
		remote, key := server.mr.RemoteAddr(), server.mr.RKey()
		data := client.mr.Bytes()
		fill := func(n int, seed byte) []byte {
			for i := range data[:n] {
				data[i] = seed + byte(i)
			}
			return bytes.Clone(data[:n])
		}

		t.Run("send", func(t *testing.T) {
			want := fill(10000, 1)
			server.recv(t, 11, server.mr.SGE(0, 4000), server.mr.SGE(8000, 8000))
			client.send(t, verbs.SendWR{ID: 12, Op: verbs.OpSend, SGE: []verbs.SGE{client.mr.SGE(0, 10000)}})
			if wc := client.want(t, verbs.CompletedSend, verbs.Success); wc.ID != 12 {
				t.Errorf("ID is %d, want 12", wc.ID)
			}
			wc := server.want(t, verbs.CompletedRecv, verbs.Success)
			if wc.ID != 11 || wc.ByteLen != 10000 || wc.Flags != verbs.ReceiveSide {
				t.Errorf("ID, ByteLen, Flags are %d, %d, %#x, want 11, 10000, receive side", wc.ID, wc.ByteLen, wc.Flags)
			}
			got := append(bytes.Clone(server.mr.Bytes()[:4000]), server.mr.Bytes()[8000:14000]...)
			if !bytes.Equal(got, want) {
				t.Error("the data differs")
			}
		})
		t.Run("inline", func(t *testing.T) {
			server.recv(t, 1, server.mr.SGE(0, 100))
			note := [5]byte{'h', 'e', 'l', 'l', 'o'} // on the stack, in no region
			client.send(t, verbs.SendWR{Op: verbs.OpSend, Inline: note[:]})
			note = [5]byte{}
			client.want(t, verbs.CompletedSend, verbs.Success)
			server.want(t, verbs.CompletedRecv, verbs.Success)
			if got := string(server.mr.Bytes()[:5]); got != "hello" {
				t.Errorf("received %q", got)
			}
		})
		t.Run("send with immediate, solicited", func(t *testing.T) {
			server.recv(t, 1)
			client.send(t, verbs.SendWR{Op: verbs.OpSendImm, Imm: 0xcafe, Flags: verbs.Solicited})
			client.want(t, verbs.CompletedSend, verbs.Success)
			wc := server.want(t, verbs.CompletedRecv, verbs.Success)
			if wc.Flags&(verbs.WithImm|verbs.WasSolicited) != verbs.WithImm|verbs.WasSolicited || wc.Imm != 0xcafe {
				t.Errorf("Flags, Imm are %#x, %#x", wc.Flags, wc.Imm)
			}
		})
		t.Run("write", func(t *testing.T) {
			want := fill(30000, 3)
			client.send(t, verbs.SendWR{Op: verbs.OpWrite, SGE: []verbs.SGE{client.mr.SGE(0, 30000)}, RemoteAddr: remote + 5, RKey: key})
			client.want(t, verbs.CompletedWrite, verbs.Success)
			if !bytes.Equal(server.mr.Bytes()[5:30005], want) {
				t.Error("the data differs")
			}
		})
		t.Run("write with immediate", func(t *testing.T) {
			server.recv(t, 21)
			client.send(t, verbs.SendWR{Op: verbs.OpWriteImm, Imm: 7, SGE: []verbs.SGE{client.mr.SGE(0, 300)}, RemoteAddr: remote,
				RKey: key})
			client.want(t, verbs.CompletedWrite, verbs.Success)
			wc := server.want(t, verbs.CompletedRecvWrite, verbs.Success)
			if wc.ID != 21 || wc.Imm != 7 || wc.ByteLen != 300 || wc.Flags&verbs.WithImm == 0 {
				t.Errorf("completion is %+v", wc)
			}
		})
		t.Run("read", func(t *testing.T) {
			copy(server.mr.Bytes()[100:], "read me")
			client.send(t, verbs.SendWR{Op: verbs.OpRead, SGE: []verbs.SGE{client.mr.SGE(40000, 7)}, RemoteAddr: remote + 100, RKey: key})
			client.want(t, verbs.CompletedRead, verbs.Success)
			if got := string(data[40000:40007]); got != "read me" {
				t.Errorf("read %q", got)
			}
		})
		t.Run("atomics", func(t *testing.T) {
			word := server.mr.Bytes()[64:72]
			binary.LittleEndian.PutUint64(word, 41)
			old := func() uint64 { return binary.LittleEndian.Uint64(data[:8]) }
			client.send(t, verbs.SendWR{Op: verbs.OpFetchAdd, Add: 1, SGE: []verbs.SGE{client.mr.SGE(0, 8)}, RemoteAddr: remote + 64,
				RKey: key})
			client.want(t, verbs.CompletedFetchAdd, verbs.Success)
			if now := binary.LittleEndian.Uint64(word); old() != 41 || now != 42 {
				t.Errorf("fetch and add: old %d, now %d, want 41, 42", old(), now)
			}
			for _, c := range []struct{ compare, now uint64 }{{1, 42}, {42, 99}} {
				client.send(t, verbs.SendWR{Op: verbs.OpCompareSwap, Compare: c.compare, Swap: 99, SGE: []verbs.SGE{client.mr.SGE(0, 8)},
					RemoteAddr: remote + 64, RKey: key})
				client.want(t, verbs.CompletedCompareSwap, verbs.Success)
				if now := binary.LittleEndian.Uint64(word); old() != 42 || now != c.now {
					t.Errorf("compare %d: old %d, now %d, want 42, %d", c.compare, old(), now, c.now)
				}
			}
		})
		t.Run("atomic write and flush", func(t *testing.T) {
			word := server.mr.Bytes()[72:80]
			for i, wr := range []verbs.SendWR{{Inline: []byte("in place")}, {SGE: []verbs.SGE{client.mr.SGE(0, 3), client.mr.SGE(3, 5)}}} {
				want := []string{"in place", "by parts"}[i]
				copy(data, "by parts")
				wr.Op, wr.RemoteAddr, wr.RKey = verbs.OpAtomicWrite, remote+72, key
				client.send(t, wr)
				for _, f := range []verbs.Flush{{Length: 8, Placement: verbs.PlaceGlobal}, {Region: true, Placement: verbs.PlaceGlobal}} {
					client.send(t, verbs.SendWR{Op: verbs.OpFlush, Flush: f, RemoteAddr: remote + 72, RKey: key})
				}
				client.want(t, verbs.CompletedAtomicWrite, verbs.Success)
				client.want(t, verbs.CompletedFlush, verbs.Success)
				client.want(t, verbs.CompletedFlush, verbs.Success)
				if string(word) != want {
					t.Errorf("the word is %q, want %q", word, want)
				}
			}
			for field, wr := range map[string]verbs.SendWR{
				"Flush.Placement is 0x0": {Op: verbs.OpFlush}, "Flush.Placement is 0x4": {Op: verbs.OpFlush, Flush: verbs.Flush{Placement: 4}},
			} {
				if err := client.qp.PostSend(&wr); !errors.Is(err, verbs.ErrInvalid) || !strings.Contains(err.Error(), field) {
					t.Errorf("%v, want %q", err, field)
				}
			}
		})
		t.Run("unsignaled", func(t *testing.T) {
			wr := verbs.SendWR{ID: 1, Op: verbs.OpWrite, SGE: []verbs.SGE{client.mr.SGE(0, 8)}, RemoteAddr: remote, RKey: key}
			ok(t, client.qp.PostSend(&wr))
			wr.ID, wr.Flags = 2, verbs.Signaled|verbs.Fence
			ok(t, client.qp.PostSend(&wr))
			if wc := client.want(t, verbs.CompletedWrite, verbs.Success); wc.ID != 2 {
				t.Errorf("ID is %d, want 2: request 1 completes silently", wc.ID)
			}
		})
		t.Run("many at once", func(t *testing.T) {
			wrs := make([]verbs.SendWR, 64)
			for i := range wrs {
				wrs[i] = verbs.SendWR{ID: uint64(i), Op: verbs.OpWrite, Flags: verbs.Signaled, SGE: []verbs.SGE{client.mr.SGE(0, 100)},
					RemoteAddr: remote, RKey: key}
			}
			if n, err := client.qp.PostSends(wrs); n != 64 || err != nil {
				t.Fatalf("posted %d, %v, want 64", n, err)
			}
			for i := range wrs {
				if wc := client.want(t, verbs.CompletedWrite, verbs.Success); wc.ID != uint64(i) {
					t.Fatalf("completion %d has ID %d", i, wc.ID)
				}
			}
		})
		t.Run("a wrong key ends the connection", func(t *testing.T) {
			client.recv(t, 50)
			server.recv(t, 51)
			client.send(t, verbs.SendWR{ID: 1, Op: verbs.OpWrite, SGE: []verbs.SGE{client.mr.SGE(0, 8)}, RemoteAddr: remote, RKey: key ^ 1})
			client.want(t, verbs.CompletedWrite, verbs.RemoteAccess)
			client.want(t, verbs.CompletedRecv, verbs.WRFlush)
			server.want(t, verbs.CompletedRecv, verbs.WRFlush)
			client.send(t, verbs.SendWR{ID: 3, Op: verbs.OpSend})
			client.want(t, verbs.CompletedSend, verbs.WRFlush)
			if info := must(client.qp.Query())(t); info.State != verbs.StateError {
				t.Errorf("state is %v, want Error", info.State)
			}
		})
	})
}

// Go heap memory that a program has registered stays alive and in place, whatever the collector does, until it is
// deregistered.
func TestRegisteredMemoryStays(t *testing.T) {
	testbed.Each(t, func(t *testing.T, b *testbed.Bed) {
		server, client := connected(t, b)
		addr, key, done := func() (uint64, uint32, func() error) {
			mr := must(server.pd.Register(append(make([]byte, 0, 4096), "stays"...), verbs.RemoteRead))(t)
			return mr.Addr(), mr.RKey(), mr.Deregister
		}()
		for range 5 {
			runtime.GC()
			_ = bytes.Repeat([]byte{0xee}, 4096) // would take the place of freed memory
		}
		read := verbs.SendWR{Op: verbs.OpRead, SGE: []verbs.SGE{client.mr.SGE(0, 5)}, RemoteAddr: addr, RKey: key}
		client.send(t, read)
		client.want(t, verbs.CompletedRead, verbs.Success)
		if got := string(client.mr.Bytes()[:5]); got != "stays" {
			t.Fatalf("read %q", got)
		}
		ok(t, done())
		ok(t, done())
		client.send(t, read)
		client.want(t, verbs.CompletedRead, verbs.RemoteAccess)
	})
}

func TestMemoryWindows(t *testing.T) {
	testbed.Each(t, func(t *testing.T, b *testbed.Bed) {
		for _, typ := range []verbs.WindowType{verbs.WindowType1, verbs.WindowType2} {
			server, client := connected(t, b)
			mw := must(server.pd.AllocWindow(typ))(t)
			bind := verbs.SendWR{Op: verbs.OpBind, Bind: verbs.Bind{
				Window: mw, MR: server.mr, Addr: server.mr.Addr() + 100, Length: 50, Access: verbs.RemoteRead,
			}}
			server.send(t, bind)
			server.want(t, verbs.CompletedBind, verbs.Success)
			wantErr(t, server.mr.Deregister(), verbs.ErrBusy)
			copy(server.mr.Bytes()[100:], "window")
			read := verbs.SendWR{Op: verbs.OpRead, SGE: []verbs.SGE{client.mr.SGE(0, 6)}, RemoteAddr: server.mr.Addr() + 100,
				RKey: mw.RKey()}
			client.send(t, read)
			client.want(t, verbs.CompletedRead, verbs.Success)
			if got := string(client.mr.Bytes()[:6]); got != "window" {
				t.Errorf("type %d: read %q", typ, got)
			}
			old := mw.RKey()
			if typ == verbs.WindowType1 { // bound again elsewhere
				server.send(t, bind)
				server.want(t, verbs.CompletedBind, verbs.Success)
			} else { // invalidated by the peer
				server.recv(t, 1)
				client.send(t, verbs.SendWR{Op: verbs.OpSendInvalidate, InvalidateKey: old})
				client.want(t, verbs.CompletedSend, verbs.Success)
				if wc := server.want(t, verbs.CompletedRecv, verbs.Success); wc.Flags&verbs.WithInvalidated == 0 || wc.Imm != old {
					t.Errorf("completion is %+v, want the invalidated key %#x", wc, old)
				}
			}
			client.send(t, read)
			client.want(t, verbs.CompletedRead, verbs.RemoteAccess)
			ok(t, mw.Close())
		}
	})
}

func TestPostingAllocatesNothing(t *testing.T) {
	server, client := connected(t, testbed.New(t, verbs.Embedded))
	remote, key := server.mr.RemoteAddr(), server.mr.RKey()
	var wc [8]verbs.WC
	one := func() {
		ok(t, client.qp.PostSend(&verbs.SendWR{
			Op: verbs.OpWrite, Flags: verbs.Signaled, SGE: []verbs.SGE{client.mr.SGE(0, 64)}, RemoteAddr: remote, RKey: key,
		}))
		for {
			n, err := client.cq.Poll(wc[:])
			ok(t, err)
			if n > 0 {
				return
			}
		}
	}
	one()
	if n := testing.AllocsPerRun(500, one); n > 0 {
		t.Errorf("posting and polling a write allocates %v times", n)
	}
}

func BenchmarkWrite64(b *testing.B) {
	server, client := connected(b, testbed.New(b, verbs.Embedded))
	remote, key := server.mr.RemoteAddr(), server.mr.RKey()
	var wc [64]verbs.WC
	b.ReportAllocs()
	outstanding := 0
	for range b.N {
		for outstanding == 64 {
			n, err := client.cq.Poll(wc[:])
			ok(b, err)
			outstanding -= n
		}
		ok(b, client.qp.PostSend(&verbs.SendWR{
			Op: verbs.OpWrite, Flags: verbs.Signaled, SGE: []verbs.SGE{client.mr.SGE(0, 64)}, RemoteAddr: remote, RKey: key,
		}))
		outstanding++
	}
	for outstanding > 0 {
		n, err := client.cq.Poll(wc[:])
		ok(b, err)
		outstanding -= n
	}
}
