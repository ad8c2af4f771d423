package opensm

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/softvpi/softvpi/internal/subnet"
	"github.com/softvpi/softvpi/wire/mad"
)

func hex(key, help string, at func(*options) *uint64) setting {
	return setting{key, help, func(o *options) string { return fmt.Sprintf("%#016x", *at(o)) }, func(o *options, v string) (err error) {
		*at(o), err = number(v)
		return err
	}}
}

func hex8(key, help string, at func(*options) *uint8) setting {
	return setting{key, help, func(o *options) string { return fmt.Sprintf("%#02x", *at(o)) }, func(o *options, v string) error {
		n, err := number(v)
		if err == nil && n > 0xff {
			err = fmt.Errorf("allowed: 0 to 0xff")
		}
		*at(o) = uint8(n)
		return err
	}}
}

// count is a number from 0 on, decimal, or hexadecimal after 0x.
func count[T ~uint8 | ~uint16 | ~int](key, help string, most int, at func(*options) *T) setting {
	return setting{key, help, func(o *options) string { return strconv.Itoa(int(*at(o))) }, func(o *options, v string) error {
		n, err := strconv.ParseUint(v, 0, 31)
		if err != nil || int(n) > most {
			return fmt.Errorf("allowed: 0 to %d", most)
		}
		*at(o) = T(n)
		return nil
	}}
}

func span(key, help string, unit time.Duration, at func(*options) *time.Duration) setting {
	return setting{key, help, func(o *options) string { return strconv.Itoa(int(*at(o) / unit)) }, func(o *options, v string) error {
		n, err := whole(v, 1<<30)
		*at(o) = time.Duration(n) * unit
		return err
	}}
}

func flag(key, help string, at func(*options) *bool) setting {
	return setting{key, help, func(o *options) string { return truthText(*at(o)) }, func(o *options, v string) (err error) {
		*at(o), err = truth(v)
		return err
	}}
}

// not is a flag whose option has the opposite meaning.
func not(key, help string, at func(*options) *bool) setting {
	return setting{key, help, func(o *options) string { return truthText(!*at(o)) }, func(o *options, v string) error {
		is, err := truth(v)
		*at(o) = !is
		return err
	}}
}

func truth(v string) (bool, error) {
	switch strings.ToUpper(v) {
	case "TRUE":
		return true, nil
	case "FALSE":
		return false, nil
	}
	return false, fmt.Errorf("allowed: TRUE, FALSE")
}

func truthText(v bool) string { return strings.ToUpper(strconv.FormatBool(v)) }

func text(key, help string, at func(*options) *string) setting {
	return setting{key, help, func(o *options) string { return orUnset(*at(o)) }, func(o *options, v string) error {
		if *at(o) = v; v == unset {
			*at(o) = ""
		}
		return nil
	}}
}

func orUnset(v string) string {
	if v == "" {
		return unset
	}
	return v
}

var enforcements = []string{"both", "in", "out", "off"}

func setEnforcement(o *options, v string) error {
	i := slices.Index(enforcements, v)
	if i < 0 {
		return fmt.Errorf("allowed: both, in, out, off")
	}
	o.cfg.Enforce = subnet.Enforcement(i)
	return nil
}

// Kinds of ports that can have their own lane tables. Kind 0 applies to all without their own.
const (
	laneAll = iota
	laneCA
	laneSwitch
	laneRouter
	laneKinds
)

// lanes holds the options for the tables of a kind of port.
type lanes struct {
	max       int // 0: not set
	highLimit int // -1: not set
	low, high []mad.VLArbitration
	slToVL    []uint8
}

// lanesOf returns the lines for a kind of port.
func lanesOf(infix string, kind int) []setting {
	at := func(o *options) *lanes { return &o.lanes[kind] }
	key := "qos_" + infix
	return []setting{
		count(key+"max_vls", "most virtual lanes, 0 for the default", 15, func(o *options) *int { return &at(o).max }),
		{key + "high_limit", "limit of the high priority of arbitration, -1 for the default",
			func(o *options) string { return strconv.Itoa(at(o).highLimit) }, func(o *options, v string) error {
				n, err := strconv.Atoi(v)
				if err != nil || n < -1 || n > 255 {
					return fmt.Errorf("allowed: -1 to 255")
				}
				at(o).highLimit = n
				return nil
			}},
		arbitration(key+"vlarb_high", "high priority: lane:weight, separated by commas",
			func(o *options) *[]mad.VLArbitration { return &at(o).high }),
		arbitration(key+"vlarb_low", "low priority: lane:weight, separated by commas",
			func(o *options) *[]mad.VLArbitration { return &at(o).low }),
		{key + "sl2vl", "lanes of the service levels 0 to 15, separated by commas, 15 to drop",
			func(o *options) string { return showLanes(at(o).slToVL) }, func(o *options, v string) (err error) {
				at(o).slToVL, err = parseLanes(v)
				return err
			}},
	}
}

func arbitration(key, help string, at func(*options) *[]mad.VLArbitration) setting {
	return setting{key, help, func(o *options) string {
		var parts []string
		for _, e := range *at(o) {
			parts = append(parts, fmt.Sprintf("%d:%d", e.VL, e.Weight))
		}
		return orUnset(strings.Join(parts, ","))
	}, func(o *options, v string) error {
		if *at(o) = nil; v == unset {
			return nil
		}
		wrong := fmt.Errorf("allowed: up to 64 pairs LANE:WEIGHT separated by commas, lanes 0 to 14, weights 0 to 255")
		for _, pair := range strings.Split(strings.TrimRight(v, ","), ",") {
			lane, weight, _ := strings.Cut(strings.TrimSpace(pair), ":")
			l, err := strconv.ParseUint(lane, 0, 8)
			w, err1 := strconv.ParseUint(weight, 0, 8)
			if err != nil || err1 != nil || l > 14 || len(*at(o)) == 64 {
				return wrong
			}
			*at(o) = append(*at(o), mad.VLArbitration{VL: uint8(l), Weight: uint8(w)})
		}
		return nil
	}}
}

func showLanes(list []uint8) string {
	var parts []string
	for _, vl := range list {
		parts = append(parts, strconv.Itoa(int(vl)))
	}
	return orUnset(strings.Join(parts, ","))
}

// parseLanes parses the lanes of service levels. As in OpenSM, levels not listed use lane 0.
func parseLanes(v string) (list []uint8, err error) {
	if v == unset {
		return nil, nil
	}
	for _, part := range strings.Split(strings.TrimRight(v, ","), ",") {
		vl, err := strconv.ParseUint(strings.TrimSpace(part), 0, 8)
		if err != nil || vl > 15 || len(list) == 16 {
			return nil, fmt.Errorf("allowed: up to 16 lanes, 0 to 15, separated by commas")
		}
		list = append(list, uint8(vl))
	}
	return list, nil
}

// qosOf builds the tables of all ports from the options: those of a kind, otherwise those for all,
// otherwise the defaults.
func (o *options) qosOf() *subnet.QoS {
	one := func(kind int) subnet.Lanes {
		l := subnet.DefaultLanes()
		for _, x := range []lanes{o.lanes[laneAll], o.lanes[kind]} {
			if x.max > 0 {
				l.Max = x.max
			}
			if x.highLimit >= 0 {
				l.HighLimit = uint8(x.highLimit)
			}
			if x.low != nil {
				l.Low = x.low
			}
			if x.high != nil {
				l.High = x.high
			}
			if x.slToVL != nil {
				l.SLtoVL = [16]uint8{}
				copy(l.SLtoVL[:], x.slToVL)
			}
		}
		return l
	}
	return &subnet.QoS{CA: one(laneCA), Router: one(laneRouter), Switch: one(laneSwitch)}
}
