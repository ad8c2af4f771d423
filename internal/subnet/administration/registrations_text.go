package administration

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// The text is that of OpenSM 3.3.23 (osm_sa.c: osm_sa_db_file_dump, osm_sa_db_file_load), line by line and
// field by field, so that each can read the other's files. Times are in seconds of wall-clock time.

// halves returns the two 64-bit halves of a GID.
func halves(g ib.GID) (hi, lo uint64) {
	return binary.BigEndian.Uint64(g[:]), binary.BigEndian.Uint64(g[8:])
}

// AppendText appends the text of the registrations to b; now is the wall-clock time.
func (r *Registrations) AppendText(b []byte, now time.Time) []byte {
	for i := range r.GUIDs {
		b = r.GUIDs[i].append(b)
	}
	for i := range r.Groups {
		b = r.Groups[i].append(b)
	}
	for i := range r.Subscriptions {
		b = r.Subscriptions[i].append(b, i)
	}
	for i := range r.Services {
		b = r.Services[i].append(b, now)
	}
	return b
}

func (g *PortGUIDs) append(b []byte) []byte {
	for at := 0; at < len(g.Table); at += guidsInBlock {
		b = fmt.Appendf(b, "GUIDInfo Record: base_guid=0x%016x lid=0x%04x block_num=0x%x", g.Port, uint16(g.LID), at/guidsInBlock)
		for i := range guidsInBlock {
			v := uint64(0)
			if at+i < len(g.Table) {
				v = g.Table[at+i]
			}
			if at+i == 0 {
				v = g.Port
			}
			b = fmt.Appendf(b, " guid%d=0x%016x", i, v)
		}
		b = append(b, "\n\n"...)
	}
	return b
}

func (g *RegisteredGroup) append(b []byte) []byte {
	w := g.Record.Append(nil)
	known := ""
	if g.WellKnown {
		known = " (well known)"
	}
	u64, u32, u16 := binary.BigEndian.Uint64, binary.BigEndian.Uint32, binary.BigEndian.Uint16
	b = fmt.Appendf(b, "MC Group 0x%04x %s: mgid=0x%016x:0x%016x port_gid=0x%016x:0x%016x qkey=0x%08x mlid=0x%04x mtu=0x%02x tclass=0x%02x pkey=0x%04x rate=0x%02x"+
		" pkt_life=0x%02x sl_flow_hop=0x%08x scope_state=0x%02x proxy_join=0x%x\n\n", u16(w[36:]), known, u64(w), u64(w[8:]), u64(w[16:]),
		u64(w[24:]), u32(w[32:]), u16(w[36:]),
		w[38], w[39], u16(w[40:]), w[42], w[43], u32(w[44:]), w[48], w[49]>>7)
	for _, m := range g.Members {
		hi, lo := halves(m.GID)
		b = fmt.Appendf(b, "mcm_port: port_gid=0x%016x:0x%016x scope_state=0x%02x proxy_join=0x%x\n\n", hi, lo, w[48]&0xf0|m.State&15,
			flagOf(m.Proxy))
	}
	return b
}

func flagOf(v bool) int {
	if v {
		return 1
	}
	return 0
}

func (s *Subscription) append(b []byte, n int) []byte {
	hi, lo := halves(s.Port)
	i := &s.Info
	ghi, glo := halves(i.GID)
	return fmt.Appendf(b, "InformInfo Record: subscriber_gid=0x%016x:0x%016x subscriber_enum=0x%x InformInfo: gid=0x%016x:0x%016x lid_range_begin=0x%x lid_range_end=0x%x"+
		" is_generic=0x%x subscribe=0x%x trap_type=0x%x trap_num=0x%x qpn_resp_time_val=0x%x node_type=0x%06x"+
		" rep_addr: lid=0x%04x path_bits=0x00 static_rate=0x00 remote_qp=0x%08x remote_qkey=0x%08x pkey_ix=0x0000 sl=0x00\n\n",
		hi, lo, uint16(n), ghi, glo, uint16(i.LIDBegin), uint16(i.LIDEnd), flagOf(i.IsGeneric), flagOf(i.Subscribe), i.Type, i.TrapNumber,
		uint32(i.QPN)<<8|uint32(i.RespTime),
		i.ProducerType, uint16(s.LID), uint32(s.QPN), uint32(ib.QKeyGSI))
}

func (s *RegisteredService) append(b []byte, now time.Time) []byte {
	r := &s.Record
	hi, lo := halves(r.GID)
	left := uint32(leaseForEver)
	if s.Left >= 0 {
		left = uint32(min(s.Left/time.Second, leaseForEver-1))
	}
	d := r.Data[:]
	b = fmt.Appendf(b, "Service Record: id=0x%016x gid=0x%016x:0x%016x pkey=0x%x lease=0x%x key=0x%x:0x%x name='%s'", r.ID, hi, lo,
		uint16(r.PKey), r.Lease, r.Key[:8], r.Key[8:], printable(r.Name[:]))
	return fmt.Appendf(b, " data8=0x%x:0x%x data16=0x%x:0x%x data32=0x%x:0x%x data64=0x%x:0x%x modified_time=0x%x lease_period=0x%x\n\n",
		d[:8], d[8:16], d[16:24], d[24:32], d[32:40], d[40:48], d[48:56], d[56:64], uint32(now.Unix()), left)
}

// printable returns a name without its padding, with control characters and quotes replaced so that it
// cannot break the line.
func printable(name []byte) string {
	text, _, _ := strings.Cut(string(name), "\x00")
	return strings.Map(func(c rune) rune {
		if c < ' ' || c == '\'' || c == 0x7f {
			return '?'
		}
		return c
	}, text)
}

// maxRegistrationLine limits the length of a line: OpenSM reads 1,023 bytes.
const maxRegistrationLine = 4096

// maxRegistrations limits the number of entries of each kind.
const maxRegistrations = 1 << 17

// ReadRegistrations reads the text; now is the wall-clock time. Like OpenSM it skips lines of unknown
// kinds. The error says which line is wrong; what precedes that line is returned with it.
func ReadRegistrations(from io.Reader, now time.Time) (r Registrations, err error) {
	in := bufio.NewScanner(from)
	in.Buffer(nil, maxRegistrationLine)
	group := false
	for n := 1; in.Scan(); n++ {
		l := line{text: strings.TrimLeft(in.Text(), " \t")}
		add := r.parse(&l, group, now)
		if l.err == nil && max(len(r.Groups), len(r.Subscriptions), len(r.Services), len(r.GUIDs)) >= maxRegistrations {
			l.err = fmt.Errorf("more than %d of a kind", maxRegistrations)
		}
		if l.err != nil {
			return r, fmt.Errorf("line %d: %w", n, l.err)
		}
		if add != nil {
			add()
			group = strings.HasPrefix(l.text, "MC Group") || group && strings.HasPrefix(l.text, "mcm_port")
		}
	}
	return r, in.Err()
}

// parse reads a line and returns a function that adds it, or nil for none. group: the line may belong to
// the last group.
func (r *Registrations) parse(l *line, group bool, now time.Time) (add func()) {
	is := func(kind string) bool { return strings.HasPrefix(l.text, kind) }
	switch {
	case is("MC Group"):
		g := l.group()
		return func() { r.Groups = append(r.Groups, g) }
	case is("mcm_port") && group:
		m := l.member()
		return func() {
			if g := &r.Groups[len(r.Groups)-1]; len(g.Members) < maxRegistrations {
				g.Members = append(g.Members, m)
			}
		}
	case is("InformInfo Record:"):
		s := l.subscription()
		return func() { r.Subscriptions = append(r.Subscriptions, s) }
	case is("Service Record:"):
		s := l.service(now)
		return func() {
			if s.Left != 0 {
				r.Services = append(r.Services, s)
			}
		}
	case is("GUIDInfo Record:"):
		port, lid, block, table := l.guids()
		return func() { r.addGUIDs(port, lid, block, table) }
	}
	return nil
}

// line is a line that is read field by field, in order.
type line struct {
	text string
	at   int
	err  error // the first error
}

// hex reads the number after name, of at most that many bits.
func (l *line) hex(name string, bits int) uint64 {
	if l.err != nil {
		return 0
	}
	i := strings.Index(l.text[l.at:], name)
	if i < 0 {
		l.err = fmt.Errorf("there is no %q", strings.TrimSpace(name))
		return 0
	}
	l.at += i + len(name)
	end := l.at
	for end < len(l.text) && l.text[end] != ' ' && l.text[end] != ':' && l.text[end] != '\t' {
		end++
	}
	v, err := strconv.ParseUint(l.text[l.at:end], 16, bits)
	if err != nil {
		l.err = fmt.Errorf("%s%s: want a hexadecimal number of %d bits", strings.TrimSpace(name), l.text[l.at:end], bits)
	}
	l.at = end
	return v
}

// gid reads the two halves of a GID.
func (l *line) gid(name string) (g ib.GID) {
	binary.BigEndian.PutUint64(g[:], l.hex(name, 64))
	binary.BigEndian.PutUint64(g[8:], l.hex(":0x", 64))
	return g
}

func (l *line) group() (g RegisteredGroup) {
	w := make([]byte, mad.MCMemberRecordLen)
	mlid := ib.LID(l.hex(" 0x", 16))
	g.WellKnown = strings.Contains(l.text, "(well known)")
	mgid, port := l.gid(" mgid=0x"), l.gid(" port_gid=0x")
	copy(w, mgid[:])
	copy(w[16:], port[:])
	binary.BigEndian.PutUint32(w[32:], uint32(l.hex(" qkey=0x", 32)))
	binary.BigEndian.PutUint16(w[36:], uint16(l.hex(" mlid=0x", 16)))
	w[38], w[39] = byte(l.hex(" mtu=0x", 8)), byte(l.hex(" tclass=0x", 8))
	binary.BigEndian.PutUint16(w[40:], uint16(l.hex(" pkey=0x", 16)))
	w[42], w[43] = byte(l.hex(" rate=0x", 8)), byte(l.hex(" pkt_life=0x", 8))
	binary.BigEndian.PutUint32(w[44:], uint32(l.hex(" sl_flow_hop=0x", 32)))
	w[48], w[49] = byte(l.hex(" scope_state=0x", 8)), byte(l.hex(" proxy_join=0x", 8)<<7)
	g.Record, _ = mad.ParseMCMemberRecord(w)
	g.Record.MLID = mlid
	return g
}

func (l *line) member() RegisteredMember {
	m := RegisteredMember{GID: l.gid(" port_gid=0x")}
	m.State = uint8(l.hex(" scope_state=0x", 8)) & 15
	m.Proxy = l.hex(" proxy_join=0x", 8) != 0
	return m
}

func (l *line) subscription() (s Subscription) {
	s.Port = l.gid(" subscriber_gid=0x")
	l.hex(" subscriber_enum=0x", 16)
	i := &s.Info
	i.GID = l.gid(" gid=0x")
	i.LIDBegin, i.LIDEnd = ib.LID(l.hex(" lid_range_begin=0x", 16)), ib.LID(l.hex(" lid_range_end=0x", 16))
	i.IsGeneric, i.Subscribe = l.hex(" is_generic=0x", 8) != 0, l.hex(" subscribe=0x", 8) != 0
	i.Type, i.TrapNumber = uint16(l.hex(" trap_type=0x", 16)), uint16(l.hex(" trap_num=0x", 16))
	v := l.hex(" qpn_resp_time_val=0x", 32)
	i.QPN, i.RespTime = ib.QPN(v>>8), uint8(v&31)
	i.ProducerType = uint32(l.hex(" node_type=0x", 24))
	s.LID = ib.LID(l.hex(" rep_addr: lid=0x", 16))
	s.QPN = ib.QPN(l.hex(" remote_qp=0x", 24))
	return s
}

func (l *line) service(now time.Time) (s RegisteredService) {
	r := &s.Record
	r.ID, r.GID = l.hex(" id=0x", 64), l.gid(" gid=0x")
	r.PKey, r.Lease = ib.PKey(l.hex(" pkey=0x", 16)), uint32(l.hex(" lease=0x", 32))
	l.words(r.Key[:], " key=0x")
	begin := l.at
	if i := strings.Index(l.text[l.at:], " name="); i >= 0 {
		begin += i + len(" name=")
	}
	// A name may contain what looks like a field: the last match is the real one.
	if end := strings.LastIndex(l.text, " data8=0x"); end >= begin {
		copy(r.Name[:len(r.Name)-1], strings.Trim(l.text[begin:end], "'\""))
		l.at = end
	}
	for i, name := range []string{" data8=0x", " data16=0x", " data32=0x", " data64=0x"} {
		l.words(r.Data[16*i:16*i+16], name)
	}
	then, left := time.Unix(int64(l.hex(" modified_time=0x", 32)), 0), l.hex(" lease_period=0x", 32)
	if left == leaseForEver {
		s.Left = -1
		return s
	}
	s.Left = max(0, time.Duration(left)*time.Second-max(0, now.Sub(then)))
	return s
}

// words reads 16 bytes in two halves.
func (l *line) words(to []byte, name string) {
	binary.BigEndian.PutUint64(to, l.hex(name, 64))
	binary.BigEndian.PutUint64(to[8:], l.hex(":0x", 64))
}

func (l *line) guids() (port uint64, lid ib.LID, block int, g mad.GUIDInfo) {
	port, lid = l.hex(" base_guid=0x", 64), ib.LID(l.hex(" lid=0x", 16))
	block = int(l.hex(" block_num=0x", 8))
	for i := range g {
		g[i] = l.hex(" guid"+strconv.Itoa(i)+"=0x", 64)
	}
	return port, lid, block, g
}

// addGUIDs stores a block in its place.
func (r *Registrations) addGUIDs(port uint64, lid ib.LID, block int, g mad.GUIDInfo) {
	if port == 0 {
		return
	}
	if n := len(r.GUIDs); n == 0 || r.GUIDs[n-1].Port != port {
		r.GUIDs = append(r.GUIDs, PortGUIDs{Port: port, LID: lid})
	}
	t := &r.GUIDs[len(r.GUIDs)-1].Table
	for len(*t) < (block+1)*guidsInBlock {
		*t = append(*t, 0)
	}
	copy((*t)[block*guidsInBlock:], g[:])
	(*t)[0] = 0 // the port's own
}
