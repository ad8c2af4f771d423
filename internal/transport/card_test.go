package transport

import (
	"bytes"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/memory"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/wire/ib"
)

// card is a transcript of a connection with a hardware adapter. The adapter's packets are written by hand and do what
// ConnectX cards do and Linux Soft-RoCE does not: each has MigReq set and a UDP source port that the card chose
// itself.
type card struct {
	t      *testing.T
	us     *end
	addr   netip.Addr
	now    clock.Time
	key    uint32
	mem    []byte
	serial uint64
	log    strings.Builder
}

const cardQPN = 0x2a5

// TestCards runs the transcripts of testdata/cards; -rewrite rewrites their expected output.
func TestCards(t *testing.T) {
	datadriven.Walk(t, "testdata/cards", func(t *testing.T, path string) {
		c := &card{t: t, addr: netip.MustParseAddr("10.0.0.9")}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string { return c.command(d) })
	})
}

func (c *card) command(d *datadriven.TestData) string {
	c.log.Reset()
	words, args := arguments(d)
	switch d.Cmd {
	case "connect":
		c.connect(args)
	case "recv":
		w := ring.RecvWR{ID: c.id(), NumSGE: 1}
		w.SGE[0] = ring.SGE{Addr: 0x80000, Length: uint32(number(args, "size", 4096)), LKey: c.key}
		c.us.postRecv(w)
	case "post":
		wr := ring.SendWR{ID: c.id(), Op: scriptOps[words[0]], Flags: ring.Signaled, NumSGE: 1, RemoteAddr: 0x5000, RKey: 0x77,
			CompareAdd: 1}
		wr.SGE[0] = ring.SGE{Addr: 0x10000, Length: uint32(number(args, "size", 8)), LKey: c.key}
		c.us.post(wr)
	case "card":
		c.packet(d, words, args)
	case "wait":
		c.wait(c.now.Add(time.Duration(number(args, "us", 0)) * time.Microsecond))
	case "holds":
		at, n := number(args, "at", 0x10000), number(args, "size", 0)
		fmt.Fprintln(&c.log, bytes.Equal(c.mem[at-0x10000:][:n], cardData[:n]))
	default:
		d.Fatalf(c.t, "unknown command %s", d.Cmd)
	}
	c.settle()
	if c.log.Len() == 0 {
		return "ok\n"
	}
	return c.log.String()
}

func (c *card) id() uint64 { c.serial++; return c.serial }

// cardData is the payload of the card's messages and read responses.
var cardData = pattern(1<<16, 'c')

// connect makes a QP of ours and connects it with the card's. Our PSNs start at 100, the card's at 5000.
func (c *card) connect(args map[string]string) {
	h := newHost(c.t, nil, "10.0.0.1", Config{AnySourcePort: args["ports"] == "any"})
	c.us, c.now, c.serial = h.qp(command.RC, QPConfig{}), 0, 0
	c.mem = pattern(1<<20, 'a')
	c.key = h.region(0x10000, c.mem, allowAll).Key
	rights := memory.RemoteWrite | memory.RemoteRead | memory.RemoteAtomic
	c.us.modify(command.ModifyQP{Mask: command.MaskState | command.MaskPKey | command.MaskAccess, State: command.Init,
		Access: uint32(rights)}, nil)
	c.us.modify(command.ModifyQP{
		Mask: command.MaskState | command.MaskRoute | command.MaskMTU | command.MaskDestQPN | command.MaskRQPSN |
			command.MaskResponderResources | command.MaskMinRNRTimer | command.MaskFlowControl,
		State: command.RTR, MTU: 256, DestQPN: cardQPN, RQPSN: 5000, ResponderResources: 4, MinRNRTimer: 1,
		FlowControl: uint8(number(args, "flow", 0)),
	}, &frame.Route{Src: h.addr, Dst: c.addr, SrcPort: 0xc000})
	c.us.modify(command.ModifyQP{
		Mask: command.MaskState | command.MaskSQPSN | command.MaskTimeout | command.MaskRetry | command.MaskRNRRetry |
			command.MaskInitiatorDepth,
		State: command.RTS, SQPSN: 100, Timeout: 8, Retry: 7, RNRRetry: uint8(number(args, "rnr", 7)), InitiatorDepth: 4,
	}, nil)
}

var cardOpcodes = map[string]ib.Opcode{
	"send-first": ib.RCSendFirst, "send-middle": ib.RCSendMiddle, "send-last": ib.RCSendLast, "send-only": ib.RCSendOnly,
	"write-first": ib.RCWriteFirst, "write-middle": ib.RCWriteMiddle, "write-last": ib.RCWriteLast, "write-only": ib.RCWriteOnly,
	"read": ib.RCReadRequest, "fetch-add": ib.RCFetchAdd, "ack": ib.RCAcknowledge, "atomic-ack": ib.RCAtomicAcknowledge,
	"response-first": ib.RCReadResponseFirst, "response-middle": ib.RCReadResponseMiddle,
	"response-last": ib.RCReadResponseLast, "response-only": ib.RCReadResponseOnly,
	"cnp": ib.CNP,
}

// packet delivers a packet of the card, with size bytes of its data, starting at offset from, behind the headers.
func (c *card) packet(d *datadriven.TestData, words []string, args map[string]string) {
	op, known := cardOpcodes[words[0]]
	if !known {
		d.Fatalf(c.t, "unknown opcode %s", words[0])
	}
	ackReq := len(words) > 1 && words[1] == "ackreq"
	hlen, _ := ib.HeaderLength(op)
	b := make([]byte, ib.BTHLen+hlen)
	size, from := int(number(args, "size", 0)), int(number(args, "from", 0))
	pad := -size & 3
	ib.BTH(b).Encode(op, false, ackReq, pad, ib.PKeyDefault, ib.QPN(c.us.q.num), ib.PSN(number(args, "psn", 0)))
	ib.BTH(b).SetMigReq(true)
	rest := b[ib.BTHLen:]
	if op.HasRETH() {
		ib.RETH(rest).Encode(number(args, "va", 0x10000), c.key, uint32(number(args, "dma", 0)))
	}
	if op.HasAtomicETH() {
		ib.AtomicETH(rest).Encode(number(args, "va", 0x10000), c.key, number(args, "add", 1), 0)
	}
	if op.HasAETH() {
		ib.AETH(rest).Encode(ib.Syndrome(number(args, "syndrome", 0x1f)), uint32(number(args, "msn", 0)))
	}
	if op == ib.CNP {
		ib.BTH(b).SetBECN(true)
	}
	b = append(append(b, cardData[from:from+size]...), make([]byte, pad)...)
	in := frame.In{Data: b, Src: c.addr, Dst: c.us.addr, SrcPort: uint16(number(args, "port", 0x1234)), HopLimit: 64}
	c.us.e.Receive(c.now, []frame.In{in})
}

// wait advances the time to at and runs the timers that end until then.
func (c *card) wait(at clock.Time) {
	for next := c.us.e.Deadline(); next <= at; next = c.us.e.Deadline() {
		c.now = max(c.now, next)
		c.us.e.Advance(c.now)
		c.settle()
	}
	c.now = at
	c.us.e.Advance(c.now)
}

// settle logs what our engine sends, completes and reports.
func (c *card) settle() {
	var out [64]frame.Out
	for n := c.us.e.Transmit(c.now, 0, out[:]); n > 0; n = c.us.e.Transmit(c.now, 0, out[:]) {
		for i := range out[:n] {
			o := &out[i]
			b := append(append([]byte(nil), o.Head[o.HeadStart:o.HeadEnd]...), o.Payload...)
			ib.BTH(b).SetPadCount(0) // the encapsulation adds the pad when it seals a packet
			fmt.Fprintf(&c.log, "%8.2f %s\n", float64(c.now)/1e3, describe(b))
		}
	}
	c.us.drain(c.now)
	for _, w := range c.us.comps {
		fmt.Fprintf(&c.log, "%8.2f wr %d %v: %v, %d bytes\n", float64(c.now)/1e3, w.ID, w.Op, w.Status, w.ByteLen)
	}
	for _, v := range c.us.events {
		fmt.Fprintf(&c.log, "%8.2f event %d, state %s\n", float64(c.now)/1e3, v.Type, stateName(c.us.q.state))
	}
	c.us.comps, c.us.events = nil, nil
}
