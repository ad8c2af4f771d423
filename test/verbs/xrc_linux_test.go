package verbs

import (
	"encoding/binary"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/softvpi/softvpi/internal/testbed"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/verbs"
)

// Extended reliable connections between two drivers on two hosts, connected by the connection manager: every packet on the
// wire is what IBA annex A14 says. Headers are read here from their bytes, icrc.py computes the ICRC from its definition, and
// tshark, which knows the messages of the connection manager and the BTH but not XRC's opcodes, agrees with both.
func TestXRCOnTheWire(t *testing.T) {
	left, right := hosts(t)
	left.need("ethtool", "dumpcap", "tshark", "python3", "rdma_xclient", "rdma_xserver")
	oneByOne(t, left, "v0")
	oneByOne(t, right, "v1")
	capture := filepath.Join(t.TempDir(), "wire.pcap")
	dump := right.start(nil, "dumpcap", "-q", "-P", "-i", "v1", "-f", "udp port 4791", "-w", capture)
	await.Eventually(t, "dumpcap captures", func() bool { return strings.Contains(dump.out.String(), "File:") || !dump.running() })

	ends := newXRCHosts(t, left, right)
	ends.exchange(t)
	right.addrs = [2]netip.Addr{right.addrs[0], right.addrs[0]}
	left.addrs = right.addrs
	right.under(t).talkTo(left.under(t), pair{server: "rdma_xserver -c x -p PORT", client: "rdma_xclient -c x -s ADDR0 -p PORT",
		says: "rdma_xclient: end 0", server2: "rdma_xserver: end 0"})

	await.Eventually(t, "the capture has the end of both connections", func() bool {
		return ended(readCapture(t, capture), 2)
	})
	_ = dump.cmd.Process.Signal(syscall.SIGINT)
	<-dump.done
	packets := readCapture(t, capture)
	ends.check(t, packets)
	if out, err := exec.Command("python3", "../interop/icrc.py", "4500", capture).CombinedOutput(); err != nil {
		t.Errorf("icrc.py: %v\n%s", err, out)
	}
	checkTshark(t, capture, packets, ends)
}

// oneByOne has the kernel cut bursts before they get to the interface, so that a capture shows the packets of the wire.
func oneByOne(t *testing.T, b *bench, name string) {
	t.Helper()
	p := b.under(t).start(nil, "ethtool", "-K", name, "generic-segmentation-offload", "off", "tx-udp-segmentation", "off")
	if <-p.done; p.err != nil {
		t.Fatalf("ethtool: %v\n%s", p.err, p.out.String())
	}
}

// xrcHosts is a program on each of two hosts.
type xrcHosts struct {
	here, there       *verbs.Device
	initiator, target *verbs.QP
	active, passive   *verbs.ID
	cqs               [2]*verbs.CQ
	mrs               [2]*verbs.MR
	srqs              []*verbs.SRQ
	requests          []xrcRequest
}

// xrcRequest is what was sent, and the opcodes of its packets.
type xrcRequest struct {
	wr      verbs.SendWR
	length  int
	packets []byte
}

const xrcMemory = 1 << 16

func newXRCHosts(t *testing.T, left, right *bench) *xrcHosts {
	t.Helper()
	ctx := testbed.Context(t)
	var devices [2]*verbs.Device
	var pds [2]*verbs.PD
	x := &xrcHosts{}
	for i, b := range []*bench{left, right} {
		h := testbed.Must(verbs.Attach(ctx, b.socket))(t)
		t.Cleanup(func() { _ = h.Close() })
		devices[i] = testbed.Must(h.DeviceByAddr(b.addrs[0]))(t)
		pds[i] = testbed.Must(devices[i].AllocPD())(t)
		x.cqs[i] = testbed.Must(devices[i].CreateCQ(64))(t)
		x.mrs[i] = testbed.Must(pds[i].Allocate(xrcMemory, verbs.LocalWrite|verbs.RemoteWrite|verbs.RemoteRead|verbs.RemoteAtomic))(t)
	}
	x.here, x.there = devices[0], devices[1]
	domain := testbed.Must(x.there.OpenXRCDomain(verbs.XRCDomainConfig{}))(t)
	for range 2 {
		x.srqs = append(x.srqs, testbed.Must(pds[1].CreateSRQ(verbs.SRQConfig{Depth: 16, XRC: domain, CQ: x.cqs[1]}))(t))
	}
	x.target = testbed.Must(domain.CreateTarget(0))(t)
	x.initiator = testbed.Must(pds[0].CreateQP(verbs.QPConfig{Type: verbs.XRCInitiator, SendCQ: x.cqs[0], SendDepth: 16}))(t)

	l := testbed.Must(x.there.ListenXRC(netip.AddrPortFrom(right.addrs[0], 7), 0))(t)
	x.active = testbed.Must(x.here.NewXRCID())(t)
	param := verbs.ConnParam{ResponderResources: 4, InitiatorDepth: 4, RetryCount: 5, RNRRetry: 6}
	done := make(chan error, 1)
	go func() {
		err := x.active.Connect(ctx, l.Addr(), x.initiator, param)
		if err == nil {
			err = x.active.Establish()
		}
		done <- err
	}()
	x.passive = testbed.Must(l.Request(ctx))(t)
	testbed.OK(t, x.passive.Accept(ctx, x.target, param))
	testbed.OK(t, <-done)
	return x
}

// The opcodes of IBA table 38 with XRC's bits, 101.
const (
	xrcSendFirst, xrcSendMiddle, xrcSendLast, xrcSendLastImm, xrcSendOnly, xrcSendOnlyImm = 0xa0, 0xa1, 0xa2, 0xa3, 0xa4, 0xa5
	xrcWriteFirst, xrcWriteMiddle, xrcWriteLast, xrcWriteOnly, xrcWriteOnlyImm            = 0xa6, 0xa7, 0xa8, 0xaa, 0xab
	xrcRead, xrcReadFirst, xrcReadMiddle, xrcReadLast, xrcReadOnly                        = 0xac, 0xad, 0xae, 0xaf, 0xb0
	xrcAck, xrcAtomicAck, xrcSwap, xrcAdd                                                 = 0xb1, 0xb2, 0xb3, 0xb4
	xrcSendOnlyInvalidate                                                                 = 0xb7
)

// exchange does every operation, one after the other, with the path MTU of 4096 in one packet and in three.
func (x *xrcHosts) exchange(t *testing.T) {
	t.Helper()
	window := verbs.SendWR{Op: verbs.OpSendInvalidate, InvalidateKey: x.mrs[1].RKey()}
	for _, r := range []xrcRequest{
		{verbs.SendWR{Op: verbs.OpSend}, 100, []byte{xrcSendOnly}},
		{verbs.SendWR{Op: verbs.OpSend}, 9000, []byte{xrcSendFirst, xrcSendMiddle, xrcSendLast}},
		{verbs.SendWR{Op: verbs.OpSendImm, Imm: 7}, 60, []byte{xrcSendOnlyImm}},
		{verbs.SendWR{Op: verbs.OpSendImm, Imm: 7}, 5000, []byte{xrcSendFirst, xrcSendLastImm}},
		{verbs.SendWR{Op: verbs.OpWrite}, 8, []byte{xrcWriteOnly}},
		{verbs.SendWR{Op: verbs.OpWrite}, 9000, []byte{xrcWriteFirst, xrcWriteMiddle, xrcWriteLast}},
		{verbs.SendWR{Op: verbs.OpWriteImm, Imm: 9}, 8, []byte{xrcWriteOnlyImm}},
		{verbs.SendWR{Op: verbs.OpRead}, 9000, []byte{xrcRead}},
		{verbs.SendWR{Op: verbs.OpFetchAdd, Add: 3}, 8, []byte{xrcAdd}},
		{verbs.SendWR{Op: verbs.OpCompareSwap, Compare: 3, Swap: 4}, 8, []byte{xrcSwap}},
	} {
		x.do(t, r, verbs.Success)
	}
	// A region is not what may be invalidated: the peer refuses, which ends the connection.
	x.do(t, xrcRequest{window, 0, []byte{xrcSendOnlyInvalidate}}, verbs.RemoteAccess)
	<-x.passive.Disconnected()
}

func (x *xrcHosts) do(t *testing.T, r xrcRequest, want verbs.Status) {
	t.Helper()
	srq := x.srqs[len(x.requests)%len(x.srqs)]
	receives := slices.Contains([]verbs.Opcode{verbs.OpSend, verbs.OpSendImm, verbs.OpWriteImm, verbs.OpSendInvalidate}, r.wr.Op)
	if receives {
		testbed.OK(t, srq.PostRecv(&verbs.RecvWR{SGE: []verbs.SGE{x.mrs[1].SGE(0, 16384)}}))
	}
	r.wr.Flags, r.wr.RemoteSRQ, r.wr.SGE = verbs.Signaled, srq.Number(), []verbs.SGE{x.mrs[0].SGE(0, r.length)}
	if !receives || r.wr.Op == verbs.OpWriteImm {
		r.wr.RemoteAddr, r.wr.RKey = x.mrs[1].RemoteAddr()+32768, x.mrs[1].RKey()
	}
	testbed.OK(t, x.initiator.PostSend(&r.wr))
	if wc := next(t, x.cqs[0]); wc.Status != want {
		t.Fatalf("%v of %d bytes: %v, want %v", r.wr.Op, r.length, wc.Status, want)
	}
	if receives && want == verbs.Success {
		if wc := next(t, x.cqs[1]); wc.Status != verbs.Success || wc.QPN != x.target.Number() {
			t.Fatalf("%v of %d bytes arrives as %+v", r.wr.Op, r.length, wc)
		}
	}
	x.requests = append(x.requests, r)
}

func next(t *testing.T, cq *verbs.CQ) verbs.WC {
	t.Helper()
	var wc [1]verbs.WC
	if _, err := cq.Next(testbed.Context(t), wc[:]); err != nil {
		t.Fatal(err)
	}
	return wc[0]
}

// roce is a packet as its bytes have it.
type roce struct {
	fromLeft bool
	opcode   byte
	qpn, psn uint32
	pad      int
	rest     []byte // after the BTH, without pad and ICRC
}

// answers returns how many PSNs a request takes: those of a read's responses, of 4096 bytes each.
func (p *roce) answers() uint32 {
	const xrceth, length = 4, 12
	if p.opcode != xrcRead {
		return 1
	}
	return max(1, (binary.BigEndian.Uint32(p.rest[xrceth+length:])+4095)/4096)
}

// Attributes of messages of the connection manager (IBA table 97).
const cmREQ, cmDREP = 0x10, 0x16

// attribute returns the attribute of a message of the connection manager, 0 for other packets.
func (p *roce) attribute() uint16 {
	const deth, sendOnly = 8, 0x64 // of UD
	if p.opcode != sendOnly || p.qpn != 1 || len(p.rest) != deth+256 || p.rest[deth+1] != 7 {
		return 0
	}
	return binary.BigEndian.Uint16(p.rest[deth+16:])
}

// ended reports whether the packets have the end of the nth connection, each of which began after the end of the one before.
func ended(packets []roce, n int) bool {
	begun := map[string]bool{}
	for _, p := range packets {
		switch p.attribute() {
		case cmREQ:
			begun[string(p.rest[16:24])] = true // by its transaction: it may be repeated
		case cmDREP:
			if len(begun) == n {
				return true
			}
		}
	}
	return false
}

// readCapture reads the RoCE v2 packets over IPv4 of a pcap file that may still be written.
func readCapture(t *testing.T, path string) (all []roce) {
	t.Helper()
	const file, record, ethernet, ip, udp, bth, icrc = 24, 16, 14, 20, 8, 12, 4
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(b) < file {
		return nil
	}
	for b = b[file:]; len(b) >= record; {
		n := int(binary.LittleEndian.Uint32(b[8:]))
		if len(b) < record+n {
			break
		}
		f := b[record : record+n]
		b = b[record+n:]
		if n < ethernet+ip+udp+bth+icrc || binary.BigEndian.Uint16(f[12:]) != 0x0800 || f[ethernet] != 0x45 {
			t.Fatalf("a packet of %d bytes that is no RoCE v2: % x", n, f[:min(n, 48)])
		}
		p := f[ethernet+ip+udp : ethernet+int(binary.BigEndian.Uint16(f[ethernet+2:]))]
		r := roce{fromLeft: f[ethernet+15] == address(0).As4()[3], opcode: p[0], pad: int(p[1] >> 4 & 3),
			qpn: binary.BigEndian.Uint32(p[4:]) & 0xffffff, psn: binary.BigEndian.Uint32(p[8:]) & 0xffffff}
		r.rest = p[bth : len(p)-icrc-r.pad]
		all = append(all, r)
	}
	return all
}

// check checks the packets of the connection of ends.
func (x *xrcHosts) check(t *testing.T, packets []roce) {
	t.Helper()
	const xrceth, reth, atomic, imm, aeth = 4, 16, 28, 4, 4
	headers := map[byte]int{xrcSendLastImm: imm, xrcSendOnlyImm: imm, xrcWriteFirst: reth, xrcWriteOnly: reth, xrcWriteOnlyImm: reth + imm,
		xrcRead: reth, xrcSwap: atomic, xrcAdd: atomic, xrcSendOnlyInvalidate: imm}
	var requests, responses []roce
	seen, answered, answers := map[uint32]bool{}, map[uint64]bool{}, map[byte]bool{}
	for _, p := range packets {
		switch {
		case p.fromLeft && p.qpn == x.target.Number():
			if !seen[p.psn] { // a busy machine may have made one side repeat
				requests = append(requests, p)
			}
			for i := range p.answers() { // of a read, what is still missing may be asked for again
				seen[(p.psn+i)&0xffffff] = true
			}
		case !p.fromLeft && p.qpn == x.initiator.Number():
			kind := p.opcode
			if kind >= xrcReadFirst && kind <= xrcReadOnly { // repeated from another place a read begins there
				kind = xrcReadFirst
			}
			answers[p.opcode] = true
			if key := uint64(kind)<<32 | uint64(p.psn); !answered[key] {
				responses = append(responses, p)
				answered[key] = true
			}
		}
	}
	for _, r := range x.requests {
		length, psn := 0, uint32(0)
		for i, want := range r.packets {
			if len(requests) == 0 {
				t.Fatalf("no packet of %v of %d bytes", r.wr.Op, r.length)
			}
			p := requests[0]
			requests = requests[1:]
			if p.opcode != want {
				t.Fatalf("packet %d of %v of %d bytes has opcode %#x, want %#x", i, r.wr.Op, r.length, p.opcode, want)
			}
			if got := binary.BigEndian.Uint32(p.rest); got != r.wr.RemoteSRQ { // the upper eight bits are reserved and zero
				t.Errorf("packet %d of %v names SRQ %#x, want %#x", i, r.wr.Op, got, r.wr.RemoteSRQ)
			}
			if i > 0 && p.psn != (psn+1)&0xffffff {
				t.Errorf("PSN %d after %d", p.psn, psn)
			}
			length, psn = length+len(p.rest)-xrceth-headers[want], p.psn
		}
		want := r.length
		if r.wr.Op == verbs.OpRead || r.wr.Op == verbs.OpFetchAdd || r.wr.Op == verbs.OpCompareSwap {
			want = 0 // the answer has them
		}
		if length != want {
			t.Errorf("%v carries %d bytes, want %d", r.wr.Op, length, want)
		}
	}
	if len(requests) > 0 {
		t.Errorf("%d packets more than the requests have, the first with opcode %#x", len(requests), requests[0].opcode)
	}
	read := 0
	for _, p := range responses {
		switch p.opcode { // none has an XRCETH
		case xrcAck:
			if len(p.rest) != aeth {
				t.Errorf("an acknowledgement with %d bytes behind the BTH", len(p.rest))
			}
		case xrcAtomicAck:
			if len(p.rest) != aeth+8 {
				t.Errorf("an atomic acknowledgement with %d bytes behind the BTH", len(p.rest))
			}
		case xrcReadFirst, xrcReadLast:
			read += len(p.rest) - aeth
		case xrcReadMiddle:
			read += len(p.rest)
		default:
			t.Errorf("opcode %#x from a target", p.opcode)
		}
	}
	if read != 9000 {
		t.Errorf("the read returned %d bytes, want 9000", read)
	}
	for _, op := range []byte{xrcAck, xrcAtomicAck, xrcReadFirst, xrcReadMiddle, xrcReadLast} {
		if !answers[op] {
			t.Errorf("no answer with opcode %#x", op)
		}
	}
}

// checkTshark compares what tshark reads: BTHs, and the fields of the connection manager that are XRC's.
func checkTshark(t *testing.T, capture string, packets []roce, x *xrcHosts) {
	t.Helper()
	rows := func(filter string, fields ...string) (rows [][]string) {
		args := []string{"-n", "-r", capture, "-T", "fields", "-E", "separator=;", "-Y", filter}
		for _, f := range fields {
			args = append(args, "-e", "infiniband."+f)
		}
		out, err := exec.Command("tshark", args...).Output()
		if err != nil {
			t.Fatalf("tshark: %v", err)
		}
		for line := range strings.Lines(string(out)) {
			rows = append(rows, strings.Split(strings.TrimSpace(line), ";"))
		}
		return rows
	}
	number := func(s string) uint32 {
		n, err := strconv.ParseUint(s, 0, 32)
		if err != nil {
			t.Fatalf("tshark prints %q, want a number", s)
		}
		return uint32(n)
	}
	seen := rows("udp.dstport == 4791", "bth.opcode", "bth.destqp", "bth.psn")
	if len(seen) != len(packets) {
		t.Fatalf("tshark sees %d packets, want %d", len(seen), len(packets))
	}
	for i, p := range packets {
		if r := seen[i]; number(r[0]) != uint32(p.opcode) || number(r[1]) != p.qpn || number(r[2]) != p.psn {
			t.Errorf("packet %d is to tshark %v, want opcode %#x, QP %#x, PSN %d", i, r, p.opcode, p.qpn, p.psn)
		}
	}
	requests := rows("infiniband.cm.req && infiniband.mad.attributeid == 0x0010", "cm.req.transpsvctype", "cm.req.ext_transport",
		"cm.req.serviceid", "cm.req.responderres", "cm.req.retrcount", "cm.req.rnrretrcount", "cm.req.srq", "cm.req.e2eflowctrl",
		"cm.req.initdepth", "cm.req.localqpn")
	replies := rows("infiniband.cm.rep && infiniband.mad.attributeid == 0x0013", "cm.rep.localqpn", "cm.rep.srq", "cm.rep.e2eflowctrl",
		"cm.rep.initdepth", "cm.rep.localeecn")
	if len(requests) < 2 || len(replies) < 2 {
		t.Fatalf("tshark sees requests %v and replies %v, want two connections", requests, replies)
	}
	for i, r := range requests {
		for k, want := range []uint32{3, 1} {
			if number(r[k]) != want {
				t.Errorf("request %d: %v, want transport service type 3, extended 1", i, r)
			}
		}
		if number(r[2])>>16 != 0x13f || number(r[3])|number(r[4])|number(r[5])|number(r[6])|number(r[7]) != 0 {
			t.Errorf("request %d: %v, want a service of RDMA_PS_IB, and no resources, retries, SRQ or credits", i, r)
		}
	}
	if r := requests[0]; number(r[8]) != 4 || number(r[9]) != x.initiator.Number() {
		t.Errorf("request %v, want depth 4 and QP %#x", r, x.initiator.Number())
	}
	for i, r := range replies {
		if number(r[0])|number(r[2])|number(r[3]) != 0 || number(r[1]) != 1 || number(r[4]) == 0 {
			t.Errorf("reply %d: %v, want no QP, credits or depth, an SRQ, and the number of a target as that of an EE context", i, r)
		}
	}
	if r := replies[0]; number(r[4]) != x.target.Number() {
		t.Errorf("reply %v, want target %#x", r, x.target.Number())
	}
}
