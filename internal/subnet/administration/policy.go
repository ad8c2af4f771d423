package administration

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/softvpi/softvpi/wire/mad"
)

// QoSPolicy assigns service levels to paths by what is requested: OpenSM's simplified policy, the section
// qos-ulps of its policy file (QoS_management_in_OpenSM.txt, 3 and 6). If routes have lanes of their own,
// the service levels of the routes take precedence.
type QoSPolicy struct {
	Default uint8 // if no rule matches
	Rules   []QoSRule
}

// QoSRule assigns a service level to paths. For each kind of criterion that it has, one range must match.
type QoSRule struct {
	ServiceIDs []Range // for requests with a service ID
	PKeys      []Range // for requests with a P_Key, without the bit of full membership
	Sources    []Range // GUIDs of source ports
	Targets    []Range
	Either     []Range // GUIDs of source or target
	SL         uint8
}

// Range is a range of numbers, inclusive.
type Range struct{ First, Last uint64 }

func inRanges(ranges []Range, v uint64) bool {
	return slices.ContainsFunc(ranges, func(r Range) bool { return r.First <= v && v <= r.Last })
}

// policyError says which line of a policy file is wrong.
type policyError struct {
	Line      int
	Got, Want string
}

func (e *policyError) Error() string {
	return fmt.Sprintf("QoS policy line %d: %q, want %s", e.Line, e.Got, e.Want)
}

// Service IDs of protocols whose last 16 bits are a TCP port, and their ports.
const (
	sdpService  = 0x10000
	rdsService  = 0x1060000 // also of iSER
	rdsPort     = 0x48ca
	iserPort    = 0x0cbc
	anyTCPPort  = 0xffff
	ipoibPKey   = 0x7fff
	fullSection = "qos-ulps (the simplified policy; port-groups, qos-setup, qos-levels and qos-match-rules are not built)"
)

// ParseQoSPolicy reads a policy file. The error is a *policyError.
func ParseQoSPolicy(text string) (*QoSPolicy, error) {
	p := &QoSPolicy{}
	inside, given := false, false
	for i, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		line = strings.TrimSpace(line)
		wrong := func(got, want string) error { return &policyError{i + 1, got, want} }
		switch {
		case line == "":
			continue
		case !inside && line == "qos-ulps":
			inside = true
			continue
		case !inside:
			return nil, wrong(line, fullSection)
		case line == "end-qos-ulps":
			inside = false
			continue
		}
		match, level, ok := cutLast(line, ':')
		sl, err := strconv.ParseUint(strings.TrimSpace(level), 0, 8)
		if !ok || err != nil || sl > 15 {
			return nil, wrong(line, "a rule, a colon and a service level, 0 to 15")
		}
		if match = strings.TrimSpace(match); match == "default" {
			if given {
				return nil, wrong(line, "one default")
			}
			p.Default, given = uint8(sl), true
			continue
		}
		r, want := parseRule(match)
		if want != "" {
			return nil, wrong(match, want)
		}
		r.SL = uint8(sl)
		p.Rules = append(p.Rules, r)
	}
	if inside {
		return nil, &policyError{strings.Count(text, "\n") + 1, "", "end-qos-ulps"}
	}
	return p, nil
}

func cutLast(s string, c byte) (before, after string, found bool) {
	if i := strings.LastIndexByte(s, c); i >= 0 {
		return s[:i], s[i+1:], true
	}
	return s, "", false
}

// parseRule reads what a rule matches; if it is wrong, want says what is expected.
func parseRule(match string) (r QoSRule, want string) {
	protocol, rest, more := strings.Cut(match, ",")
	word, numbers, _ := strings.Cut(strings.TrimSpace(rest), " ")
	ranges, err := parseRanges(numbers)
	if more && (err != nil || len(ranges) == 0) {
		return r, "numbers behind " + word + ", such as 0x10, 0x20-0x2f"
	}
	protocol = strings.TrimSpace(protocol)
	ports := func(base uint64, usual Range) {
		for _, x := range append(ranges, usual)[:max(1, len(ranges))] {
			r.ServiceIDs = append(r.ServiceIDs, Range{base | x.First&anyTCPPort, base | x.Last&anyTCPPort})
		}
	}
	switch key := protocol + " " + word; key {
	case "sdp ", "sdp port-num":
		ports(sdpService, Range{0, anyTCPPort})
	case "rds ", "rds port-num":
		ports(rdsService, Range{rdsPort, rdsPort})
	case "iser ", "iser port-num":
		ports(rdsService, Range{iserPort, iserPort})
	case "ipoib ":
		r.PKeys = []Range{{ipoibPKey, ipoibPKey}}
	case "ipoib pkey", "any pkey":
		for _, x := range ranges {
			r.PKeys = append(r.PKeys, Range{x.First & 0x7fff, x.Last & 0x7fff})
		}
	case "any service-id":
		r.ServiceIDs = ranges
	case "any source-port-guid":
		r.Sources = ranges
	case "any target-port-guid", "srp target-port-guid":
		r.Targets = ranges
	case "any source-target-port-guid":
		r.Either = ranges
	default:
		return r, "default, sdp, rds or iser with or without port-num, ipoib with or without pkey, srp with target-port-guid, or any with service-id, pkey," +
			" source-port-guid, target-port-guid or source-target-port-guid"
	}
	return r, ""
}

// parseRanges reads numbers and ranges separated by commas.
func parseRanges(text string) (list []Range, err error) {
	for _, part := range strings.Split(text, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		first, last, two := strings.Cut(part, "-")
		var r Range
		if r.First, err = strconv.ParseUint(strings.TrimSpace(first), 0, 64); err != nil {
			return nil, err
		}
		if r.Last = r.First; two {
			if r.Last, err = strconv.ParseUint(strings.TrimSpace(last), 0, 64); err != nil {
				return nil, err
			}
		}
		if r.Last < r.First {
			return nil, fmt.Errorf("a range from the higher to the lower")
		}
		list = append(list, r)
	}
	return list, nil
}

// level returns the service level for a requested path between two ports.
func (p *QoSPolicy) level(w *wish, from, to uint64) uint8 {
	for i := range p.Rules {
		r := &p.Rules[i]
		switch {
		case r.ServiceIDs != nil && !(w.has(mad.PathServiceID8|mad.PathServiceID56) && inRanges(r.ServiceIDs, w.rec.ServiceID)),
			r.PKeys != nil && !(w.has(mad.PathPKey) && inRanges(r.PKeys, uint64(w.rec.PKey&0x7fff))),
			r.Sources != nil && !inRanges(r.Sources, from), r.Targets != nil && !inRanges(r.Targets, to),
			r.Either != nil && !inRanges(r.Either, from) && !inRanges(r.Either, to):
			continue
		}
		return r.SL
	}
	return p.Default
}
