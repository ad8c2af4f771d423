package partition

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/softvpi/softvpi/wire/ib"
)

// parseError is a mistake in a partition configuration.
type parseError struct {
	Line int
	Text string
}

func (e *parseError) Error() string {
	return fmt.Sprintf("partitions: line %d: %s", e.Line, e.Text)
}

// Parse reads a partition configuration in OpenSM's syntax (opensm(8), PARTITION CONFIGURATION). If it has
// no rule for the default partition, all ports are limited members of that. The error is a *parseError.
func Parse(text string) (*Config, error) {
	c := &Config{}
	p := parser{c: c}
	var definition strings.Builder
	begin := 0
	for i, line := range strings.Split(text, "\n") {
		if at := strings.IndexByte(line, '#'); at >= 0 {
			line = line[:at]
		}
		for {
			part, rest, ended := strings.Cut(line, ";")
			if strings.TrimSpace(definition.String()) == "" {
				begin = i + 1
			}
			definition.WriteString(part)
			if !ended {
				definition.WriteByte('\n')
				break
			}
			if err := p.define(definition.String(), begin); err != nil {
				return nil, err
			}
			definition.Reset()
			line = rest
		}
	}
	if strings.TrimSpace(definition.String()) != "" {
		return nil, &parseError{begin, "the definition does not end with ';'"}
	}
	p.finish()
	return c, nil
}

type parser struct {
	c    *Config
	auto ib.PKey
}

// define reads one definition: NAME[=KEY][,FLAG]...:MEMBERS.
func (p *parser) define(text string, line int) error {
	if strings.TrimSpace(text) == "" {
		return nil
	}
	head, body, ok := strings.Cut(text, ":")
	if !ok {
		return &parseError{line, "there is no ':' after the name and flags of the partition"}
	}
	fields := strings.Split(head, ",")
	name, key, hasKey := cutTrim(fields[0])
	part := Partition{Name: name, Flags: defaultFlags()}
	switch {
	case hasKey:
		k, err := strconv.ParseUint(key, 0, 16)
		if err != nil || k&0x7fff == 0 {
			return &parseError{line, fmt.Sprintf("P_Key %q: want 0x0001 to 0x7fff", key)}
		}
		part.Key = ib.PKey(k) & 0x7fff
	case name == "Default":
		part.Key = defaultKey
	default:
		part.Key = p.unused()
	}
	member := limitedMember
	for _, f := range fields[1:] {
		k, v, _ := cutTrim(f)
		switch strings.ToLower(k) {
		case "":
		case "indx0":
			part.Index0 = true
		case "ipoib":
			part.IPoIB = true
		case "defmember":
			m, err := membership(v)
			if err != nil {
				return &parseError{line, err.Error()}
			}
			member = m
		default:
			if err := part.Flags.set(k, v); err != nil {
				return &parseError{line, err.Error()}
			}
		}
	}
	for i, l := range strings.Split(body, "\n") {
		if err := part.members(l, member); err != nil {
			return &parseError{line + i, err.Error()}
		}
	}
	p.merge(part)
	return nil
}

func cutTrim(s string) (before, after string, found bool) {
	before, after, found = strings.Cut(s, "=")
	return strings.TrimSpace(before), strings.TrimSpace(after), found
}

func membership(v string) (Membership, error) {
	switch strings.ToLower(v) {
	case "full":
		return fullMember, nil
	case "limited", "limi":
		return limitedMember, nil
	case "both":
		return bothMember, nil
	}
	return 0, fmt.Errorf("membership %q: want full, limited or both", v)
}

// members reads one line of the list after the colon: ports, or one multicast group.
func (p *Partition) members(line string, how Membership) error {
	line = strings.TrimSpace(line)
	if strings.HasPrefix(strings.ToLower(line), "mgid") {
		return p.group(line)
	}
	for _, f := range strings.Split(line, ",") {
		who, v, given := cutTrim(f)
		if who == "" {
			continue
		}
		m := Member{How: how}
		if given && v != "" {
			var err error
			if m.How, err = membership(v); err != nil {
				return err
			}
		}
		switch strings.ToUpper(who) {
		case "ALL":
			m.Who = whoAll
		case "ALL_CAS":
			m.Who = whoCAs
		case "ALL_SWITCHES":
			m.Who = whoSwitches
		case "ALL_ROUTERS":
			m.Who = whoRouters
		case "SELF":
			m.Who = whoSelf
		default:
			g, err := strconv.ParseUint(who, 0, 64)
			if err != nil || g == 0 {
				return fmt.Errorf("port %q: want a port GUID, ALL, ALL_CAS, ALL_SWITCHES, ALL_ROUTERS or SELF", who)
			}
			m.GUID = g
		}
		p.Members = append(p.Members, m)
	}
	return nil
}

func (p *Partition) group(line string) error {
	fields := strings.Split(line, ",")
	_, gid, _ := cutTrim(fields[0])
	a, err := netip.ParseAddr(gid)
	if err != nil || !a.Is6() || a.As16()[0] != 0xff {
		return fmt.Errorf("mgid %q: want a multicast GID, ff00:: and so on", gid)
	}
	g := GroupSpec{MGID: ib.GID(a.As16()), Flags: defaultFlags()}
	for _, f := range fields[1:] {
		k, v, _ := cutTrim(f)
		if k == "" {
			continue
		}
		if err := g.Flags.set(k, v); err != nil {
			return err
		}
	}
	if IsIP(g.MGID) { // the P_Key is part of the MGID (RFC 4391 4)
		switch in := ib.PKey(g.MGID[4])<<8 | ib.PKey(g.MGID[5]); {
		case in == 0:
			g.MGID[4], g.MGID[5] = byte((p.Key|0x8000)>>8), byte(p.Key)
		case in&0x7fff != p.Key:
			return fmt.Errorf("mgid %q: its P_Key %#04x is not that of the partition, %#04x", gid, uint16(in), uint16(p.Key))
		}
	}
	p.Groups = append(p.Groups, g)
	return nil
}

// IsIP reports whether a multicast GID belongs to IPoIB: signature 0x401b or 0x601b (RFC 4391 4).
func IsIP(g ib.GID) bool { return (g[2] == 0x40 || g[2] == 0x60) && g[3] == 0x1b }

// set reads one flag of a group.
func (f *GroupFlags) set(k, v string) error {
	number := func(bits int) (uint64, error) {
		n, err := strconv.ParseUint(v, 0, 64)
		if err != nil || n >= 1<<bits {
			return 0, fmt.Errorf("%s=%s: want a number of %d bits", k, v, bits)
		}
		return n, nil
	}
	var n uint64
	var err error
	switch strings.ToLower(k) {
	case "rate":
		n, err = number(6)
		f.Rate = uint8(n)
	case "mtu":
		if n, err = number(6); err == nil && (n < 1 || n > 5) {
			err = fmt.Errorf("mtu=%s: want 1 to 5", v)
		}
		f.MTU = uint8(n)
	case "sl":
		n, err = number(4)
		f.SL = uint8(n)
	case "scope":
		n, err = number(4)
		f.Scopes = append(f.Scopes, uint8(n))
	case "q_key":
		n, err = number(32)
		f.QKey, f.HasQKey = uint32(n), true
	case "tclass":
		n, err = number(8)
		f.TClass = uint8(n)
	case "flowlabel":
		n, err = number(20)
		f.FlowLabel = uint32(n)
	default:
		return fmt.Errorf("flag %q: want indx0, ipoib, defmember, rate, mtu, sl, scope, Q_Key, TClass or FlowLabel", k)
	}
	return err
}

// merge adds a definition, to an existing one with the same P_Key if there is one, which keeps its name.
func (p *parser) merge(part Partition) {
	for i := range p.c.List {
		old := &p.c.List[i]
		if old.Key != part.Key {
			continue
		}
		old.Members = append(old.Members, part.Members...)
		old.Groups = append(old.Groups, part.Groups...)
		old.Index0 = old.Index0 || part.Index0
		if part.IPoIB {
			old.IPoIB, old.Flags = true, part.Flags
		}
		return
	}
	p.c.List = append(p.c.List, part)
}

// unused returns an unused P_Key, for a partition without one.
func (p *parser) unused() ib.PKey {
next:
	for {
		p.auto++
		for i := range p.c.List {
			if p.c.List[i].Key == p.auto {
				continue next
			}
		}
		return p.auto
	}
}

// finish adds the default partition if there is no rule about it.
func (p *parser) finish() {
	for i := range p.c.List {
		if p.c.List[i].Key == defaultKey {
			return
		}
	}
	p.c.List = append([]Partition{{Name: "Default", Key: defaultKey, Flags: defaultFlags(),
		Members: []Member{{Who: whoAll, How: limitedMember}, {Who: whoSelf, How: fullMember}}}}, p.c.List...)
}
