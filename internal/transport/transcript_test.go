package transport

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/memory"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/internal/sim"
	"github.com/softvpi/softvpi/wire/ib"
)

// script is a transcript in progress: two QPs a and b, and a log of the packets between them in the order sent.
type script struct {
	t      *testing.T
	n      *sim.Network
	ends   map[string]*end
	keys   map[string]uint32
	mem    map[string][]byte
	names  map[*sim.Port]string
	log    strings.Builder
	drop   map[string]bool // "a1": the first packet that a sends in this command is lost
	dup    map[string]bool
	again  map[string]bool   // before this packet the first one of the command comes again
	first  map[string][]byte // by sender
	sent   map[string]int
	serial uint64
}

// TestTranscripts runs the cases of testdata/transcripts; -rewrite rewrites their expected output.
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata/transcripts", func(t *testing.T, path string) {
		s := &script{t: t}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string { return s.command(d) })
	})
}

// arguments returns a command's words, and its values by name.
func arguments(d *datadriven.TestData) (words []string, args map[string]string) {
	args = map[string]string{}
	for _, a := range d.CmdArgs {
		if len(a.Vals) == 0 {
			words = append(words, a.Key)
			continue
		}
		args[a.Key] = strings.Join(a.Vals, ",")
	}
	return words, args
}

func (s *script) command(d *datadriven.TestData) string {
	s.log.Reset()
	words, args := arguments(d)
	switch d.Cmd {
	case "connect":
		s.connect(args)
	case "recv":
		s.recv(words[0], args)
	case "post":
		s.post(words[0], words[1:], args)
	case "inject":
		s.inject(words[0], args)
	case "modify":
		s.modify(words[0], words[1])
	case "deregister":
		if err := s.ends[words[0]].mem.Deregister(s.keys[words[0]]); err != nil {
			fmt.Fprintln(&s.log, err)
		}
	case "run":
	default:
		d.Fatalf(s.t, "unknown command %s", d.Cmd)
	}
	if d.Cmd == "run" {
		s.run(args)
	}
	if s.log.Len() == 0 {
		return "ok\n"
	}
	return s.log.String()
}

func number(args map[string]string, key string, def uint64) uint64 {
	v, ok := args[key]
	if !ok {
		return def
	}
	n, err := strconv.ParseUint(v, 0, 64)
	if err != nil {
		panic(err)
	}
	return n
}

func (s *script) connect(args map[string]string) {
	c := defaultConnection()
	c.mtu = uint32(number(args, "mtu", 256))
	c.psn = [2]uint32{uint32(number(args, "psn", 100)), uint32(number(args, "psn-b", 5000))}
	c.timeout = uint8(number(args, "timeout", 8))
	c.retry, c.rnr = uint8(number(args, "retry", 7)), uint8(number(args, "rnr", 7))
	c.rnrTimer = uint8(number(args, "rnr-timer", 1))
	c.depth = uint8(number(args, "depth", 4))
	c.initiatorDepth = uint8(number(args, "initiator-depth", 0))
	c.flow = uint8(number(args, "flow", 0))
	c.access = memory.Access(number(args, "access", uint64(c.access)))
	typ := command.RC
	if args["type"] == "uc" {
		typ = command.UC
	}
	n, a, b := newPair(s.t, 1, typ)
	s.n, s.ends, s.keys, s.mem = n, map[string]*end{"a": a, "b": b}, map[string]uint32{}, map[string][]byte{}
	s.names = map[*sim.Port]string{a.port: "a", b.port: "b"}
	connect(a, b, c)
	for name, x := range s.ends {
		s.mem[name] = pattern(1<<20, name[0])
		s.keys[name] = x.region(0x10000, s.mem[name], allowAll).Key
	}
	n.Filter = s.sees
}

// sees logs a packet and reports whether it arrives.
func (s *script) sees(from, to *sim.Port, p []byte) bool {
	name := s.names[from]
	s.sent[name]++
	id := name + strconv.Itoa(s.sent[name])
	note := ""
	if s.drop[id] {
		note = "  (lost)"
	}
	if s.dup[id] {
		note += "  (and again 3 us later)"
		s.n.Inject(to, netip.AddrPortFrom(from.Addr, pairPort), s.n.Now().Add(3*time.Microsecond), append([]byte(nil), p...))
	}
	if s.sent[name] == 1 {
		s.first[name] = append([]byte(nil), p...)
	}
	if s.again[id] {
		note += "  (behind the first one again)"
		s.n.Inject(to, netip.AddrPortFrom(from.Addr, pairPort), s.n.Now().Add(s.n.Default.Delay), s.first[name])
	}
	fmt.Fprintf(&s.log, "%7.2f %s -> %s  %s%s\n", float64(s.n.Now())/1e3, name, s.names[to], describe(p), note)
	return !s.drop[id]
}

// describe returns a packet as one line of text.
func describe(b []byte) string {
	p, err := ib.ParsePacket(b)
	if err != nil {
		return err.Error()
	}
	s := fmt.Sprintf("%v psn=%d", p.BTH.Opcode(), p.BTH.PSN())
	if p.BTH.AckReq() {
		s += " ackreq"
	}
	if p.BTH.Solicited() {
		s += " solicited"
	}
	if p.FETH != nil {
		s += fmt.Sprintf(" placement=%d selectivity=%d", p.FETH.Placement(), p.FETH.Selectivity())
	}
	if p.RETH != nil {
		s += fmt.Sprintf(" va=%#x dma=%d", p.RETH.VA(), p.RETH.DMALen())
	}
	if p.AtomicETH != nil {
		s += fmt.Sprintf(" va=%#x", p.AtomicETH.VA())
	}
	if p.AETH != nil {
		s += fmt.Sprintf(" [%v] msn=%d", p.AETH.Syndrome(), p.AETH.MSN())
	}
	if p.AtomicAck != nil {
		s += fmt.Sprintf(" original=%#x", p.AtomicAck.Original())
	}
	if p.ImmDt != nil {
		s += fmt.Sprintf(" imm=%d", p.ImmDt.Value())
	}
	if len(p.Payload) > 0 {
		s += fmt.Sprintf(" len=%d", len(p.Payload))
	}
	return s
}

func (s *script) recv(name string, args map[string]string) {
	for range number(args, "count", 1) {
		s.serial++
		w := ring.RecvWR{ID: s.serial, NumSGE: 1}
		w.SGE[0] = ring.SGE{Addr: 0x80000, Length: uint32(number(args, "size", 4096)), LKey: s.keys[name]}
		s.ends[name].postRecv(w)
	}
}

var scriptOps = map[string]ring.WROp{
	"send": ring.OpSend, "send-imm": ring.OpSendImm, "send-inv": ring.OpSendInv, "write": ring.OpWrite, "write-imm": ring.OpWriteImm,
	"read": ring.OpRead, "compare-swap": ring.OpCompareSwap, "fetch-add": ring.OpFetchAdd, "atomic-write": ring.OpAtomicWrite,
	"flush": ring.OpFlush,
}

func (s *script) post(name string, words []string, args map[string]string) {
	peer := map[string]string{"a": "b", "b": "a"}[name]
	for range number(args, "count", 1) {
		s.serial++
		wr := ring.SendWR{ID: s.serial, Flags: ring.Signaled, NumSGE: 1, Op: scriptOps[words[0]]}
		if wr.Op == 0 {
			s.t.Fatalf("unknown operation %s", words[0])
		}
		for _, w := range words[1:] {
			switch w {
			case "fence":
				wr.Flags |= ring.Fence
			case "solicited":
				wr.Flags |= ring.Solicited
			}
		}
		wr.Imm = uint32(number(args, "imm", 0))
		wr.SGE[0] = ring.SGE{Addr: 0x10000, Length: uint32(number(args, "size", 8)),
			LKey: uint32(number(args, "lkey", uint64(s.keys[name])))}
		wr.RemoteAddr = number(args, "va", 0x10000)
		wr.RKey = uint32(number(args, "rkey", uint64(s.keys[peer])))
		if wr.Op == ring.OpFlush {
			wr.NumSGE, wr.Access = 0, uint32(number(args, "placement", 1)|number(args, "selectivity", 0)<<4)
		}
		wr.CompareAdd, wr.Swap = number(args, "add", 1), number(args, "swap", 0)
		s.ends[name].post(wr)
	}
}

// inject delivers an acknowledgement that the peer did not send.
func (s *script) inject(to string, args map[string]string) {
	x := s.ends[to]
	b := make([]byte, ib.BTHLen+ib.AETHLen)
	ib.BTH(b).Encode(ib.RCAcknowledge, false, false, 0, ib.PKeyDefault, ib.QPN(x.q.num), ib.PSN(number(args, "psn", 0)))
	ib.AETH(b[ib.BTHLen:]).Encode(ib.Syndrome(number(args, "syndrome", 0x1f)), uint32(number(args, "msn", 0)))
	src := map[string]netip.Addr{"a": s.ends["b"].addr, "b": s.ends["a"].addr}[to]
	s.n.Inject(x.port, netip.AddrPortFrom(src, pairPort), s.n.Now(), b)
}

func (s *script) modify(name, state string) {
	for i, n := range stateNames {
		if strings.EqualFold(n, state) {
			if err := s.ends[name].e.Modify(s.n.Now(), s.ends[name].q, command.ModifyQP{Mask: command.MaskState, State: command.QPState(i)},
				nil); err != nil {
				fmt.Fprintln(&s.log, err)
			}
		}
	}
	s.ends[name].port.Wake()
}

func set(list string) map[string]bool {
	m := map[string]bool{}
	for _, v := range strings.Split(list, ",") {
		m[v] = true
	}
	return m
}

func (s *script) run(args map[string]string) {
	s.drop, s.dup, s.again = set(args["drop"]), set(args["dup"]), set(args["again"])
	s.sent, s.first = map[string]int{}, map[string][]byte{}
	if v := args["drop-all"]; v != "" {
		for i := range 1000 {
			s.drop[v+strconv.Itoa(i)] = true
		}
	}
	limit := s.n.Now().Add(time.Duration(number(args, "for", 1_000_000)) * time.Microsecond)
	for s.n.Step(limit) {
		for _, name := range []string{"a", "b"} {
			s.outcomes(name)
		}
	}
	s.outcomes("a")
	s.outcomes("b")
}

func (s *script) outcomes(name string) {
	x := s.ends[name]
	now := float64(s.n.Now()) / 1e3
	for _, c := range x.comps {
		extra := ""
		if c.Flags&ring.HasImm != 0 {
			extra += fmt.Sprintf(" imm=%d", c.Imm)
		}
		if c.Flags&ring.IsSolicited != 0 {
			extra += " solicited"
		}
		fmt.Fprintf(&s.log, "%7.2f %s: wr %d %v: %v, %d bytes%s\n", now, name, c.ID, c.Op, c.Status, c.ByteLen, extra)
	}
	for _, v := range x.events {
		fmt.Fprintf(&s.log, "%7.2f %s: event %d, state %s\n", now, name, v.Type, stateName(x.q.state))
	}
	x.comps, x.events = nil, nil
}
