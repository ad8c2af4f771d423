package transport

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/memory"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/wire/ib"
)

// zoo is an engine with QPs of each service in each state, with work posted, a region in the middle of guarded
// memory, and a peer from whose address packets come.
type zoo struct {
	*host
	peer   *host
	ends   []*end
	memory []byte
	key    uint32
}

const zooGuard = 4096

func newZoo(t testing.TB) *zoo {
	z := &zoo{host: newHost(t, nil, "10.0.0.1", Config{}), peer: newHost(t, nil, "10.0.0.2", Config{FirstQPN: 0x100})}
	z.memory = bytes.Repeat([]byte{0xee}, 2*zooGuard+8192)
	r, err := z.mem.Register(memory.Region{PD: testPD, Base: 0x10000, Length: 8192, Access: allowAll,
		Bytes: z.memory[zooGuard : zooGuard+8192]})
	if err != nil {
		t.Fatal(err)
	}
	z.key = r.Key
	for _, typ := range []command.QPType{command.RC, command.UC} {
		for state := command.Reset; state <= command.Err; state++ {
			if state == command.SQE && typ == command.RC {
				continue
			}
			a, b := z.qp(typ, QPConfig{}), z.peer.qp(typ, QPConfig{})
			c := defaultConnection()
			c.flow = uint8(state & 1)
			if state != command.Reset && state != command.Init {
				connect(a, b, c)
			}
			z.work(a)
			if state > command.RTS && state != command.SQE {
				a.modify(command.ModifyQP{Mask: command.MaskState, State: state}, nil)
			}
			z.ends = append(z.ends, a)
		}
	}
	u := z.qp(command.UD, QPConfig{})
	u.modify(command.ModifyQP{Mask: command.MaskState | command.MaskPKey | command.MaskQKey, State: command.Init, QKey: 0x11111111}, nil)
	u.modify(command.ModifyQP{Mask: command.MaskState, State: command.RTR}, nil)
	z.work(u)
	z.ends = append(z.ends, u)
	return z
}

// work posts eight receives and a request of each kind.
func (z *zoo) work(x *end) {
	g := ring.SGE{Addr: 0x10000, Length: 4096, LKey: z.key}
	for range 8 {
		x.postRecv(ring.RecvWR{NumSGE: 1, SGE: [ring.MaxSGE]ring.SGE{g}})
	}
	for op := ring.OpSend; op <= ring.OpFetchAdd; op++ {
		wr := ring.SendWR{Op: op, NumSGE: 1, Flags: ring.Signaled, RemoteAddr: 0x10000, RKey: z.key, SGE: [ring.MaxSGE]ring.SGE{g}}
		if op >= ring.OpCompareSwap {
			wr.SGE[0].Length = 8
		}
		x.post(wr)
	}
}

// FuzzReceive feeds arbitrary packets to an engine with QPs in all states. Nothing may panic, no byte outside the
// region may change, and the engine keeps no more than its bounds allow.
func FuzzReceive(f *testing.F) {
	bth := func(op ib.Opcode, qpn uint32, psn uint32, rest ...byte) []byte {
		b := make([]byte, ib.BTHLen)
		ib.BTH(b).Encode(op, false, true, 0, ib.PKeyDefault, ib.QPN(qpn), ib.PSN(psn))
		return append(b, rest...)
	}
	reth := make([]byte, ib.RETHLen)
	for qpn := uint32(0x11); qpn < 0x20; qpn++ {
		ib.RETH(reth).Encode(0x10000, 0x101, 64)
		f.Add(bth(ib.RCWriteOnly, qpn, 5000, append(reth, make([]byte, 64)...)...))
		f.Add(bth(ib.RCReadRequest, qpn, 5000, reth...))
		f.Add(bth(ib.RCAtomicWrite, qpn, 5000, append(reth, make([]byte, 8)...)...))
		f.Add(bth(ib.RCFlush, qpn, 5000, append([]byte{0, 0, 0, 1}, reth...)...))
		f.Add(bth(ib.RCSendFirst, qpn, 5000, make([]byte, 1024)...))
		f.Add(bth(ib.RCAcknowledge, qpn, 100, 0x62, 0, 0, 1))
		f.Add(bth(ib.RCAcknowledge, qpn, 101, 0x20, 0, 0, 1))
		f.Add(bth(ib.RCReadResponseOnly, qpn, 104, 0, 0, 0, 1))
		f.Add(bth(ib.UCSendOnly, qpn, 5000, 1, 2, 3, 4))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		z := newZoo(t)
		out := make([]frame.Out, 64)
		now := clock.Time(1)
		z.e.Transmit(now, 0, out)
		for k := 0; len(data) > 0 && k < 64; k++ {
			// A length in front of each packet makes one input a sequence of packets.
			n := len(data)
			if k > 0 && len(data) > 2 {
				n = min(n, 2+int(binary.BigEndian.Uint16(data))%1100)
			} else if len(data) > 2200 {
				n = 1100
			}
			now += 1000
			for _, x := range z.ends {
				p := append([]byte(nil), data[:n]...)
				if len(p) >= ib.BTHLen && k%2 == 0 {
					ib.BTH(p).SetDestQP(ib.QPN(x.q.num))
				}
				z.e.Receive(now, []frame.In{{Data: p, Src: z.peer.addr, Dst: z.addr}})
			}
			for range 8 {
				if z.e.Transmit(now, 0, out) == 0 {
					break
				}
			}
			z.e.Advance(now)
			z.drain(now)
			data = data[n:]
		}
		for _, g := range [][]byte{z.memory[:zooGuard], z.memory[len(z.memory)-zooGuard:]} {
			for _, b := range g {
				if b != 0xee {
					t.Fatal("memory outside the region was written")
				}
			}
		}
		for _, w := range z.e.windows {
			if w.inFlight < 0 || w.inFlight > 4*z.e.cfg.Window.Max {
				t.Fatalf("%d packets in flight, want at most four windows", w.inFlight)
			}
		}
	})
}
