package ipoib

import (
	"fmt"
	"time"

	"github.com/softvpi/softvpi/wire/ib"
)

// monitorInterval is the time between runs of the multicast monitor (WinOF 5.50, 4.6.7).
const monitorInterval = 30 * time.Second

// unknownInterval is how often packets of unknown protocols are reported at most, because anybody may send them.
const unknownInterval = time.Minute

// Config configures an interface. The zero value of a field selects its default, that of the registry key
// if there is one.
type Config struct {
	// PKey is the interface's partition. With the top bit set it requires full membership; without it,
	// limited membership is used if the port's table has no full one (WinOF 5.50, 5.2). 0: whatever the
	// first entry of the table is.
	PKey  ib.PKey
	Scope uint8 // of the broadcast group, 1 to 14; 0: linkLocalScope
	// MTU is the size of the largest IP packet, as in *JumboPacket: minMTU to maxMTU. 0: maxMTU. The
	// subnet may allow less.
	MTU int
	// SATimeout is the time before a request to the subnet administration is retransmitted (SaTimeout):
	// 250 ms to 60 s. 0: 1 s.
	SATimeout time.Duration
	// SARetries is how often it is retransmitted (SaRetries): 1 to 64. 0: 10.
	SARetries int
	// QueryPaths requests a path record for every neighbour (EnableQPR). Without it, the path to a
	// neighbour of the same subnet is the one by which its answer arrived.
	QueryPaths bool
	// GeneralQueryRuns is the number of multicast monitor runs between general queries
	// (McastIgmpMldGeneralQueryInterval): 1 to 10. 0: 3.
	GeneralQueryRuns int
	// QueryResponseRuns is the number of runs that a query may stay unanswered before its group is left
	// (McastQueryResponseInterval): 1 to 10. 0: 2.
	QueryResponseRuns int
	// LocalMaxAge is the number of endpoint monitor runs that an unused local endpoint survives
	// (LocalEndpointMaxAge): 1 to 20. 0: 5.
	LocalMaxAge int
	// LocalInterval is the time between runs of the endpoint monitor (LocalEndpointMonitorInterval): 10 s
	// to 20 minutes. 0: 1 minute.
	LocalInterval time.Duration
	// MaxGroups is the maximum number of multicast groups (MaxNumOfMCList): 64 to 1024. 0: 128. Further
	// groups are not joined.
	MaxGroups int
}

// complete returns the configuration with its defaults filled in. The error is a *ConfigError.
func (c Config) complete() (Config, error) {
	if c.PKey != 0 && !c.PKey.Valid() {
		return c, &ConfigError{"PKey", fmt.Sprintf("%#04x", uint16(c.PKey)), "a partition, 0x0001 to 0x7fff, with or without the top bit"}
	}
	scope := int(c.Scope)
	for _, f := range []struct {
		name                string
		v                   *int
		otherwise, min, max int
	}{
		{"Scope", &scope, linkLocalScope, 1, 14},
		{"MTU", &c.MTU, maxMTU, minMTU, maxMTU},
		{"SARetries", &c.SARetries, 10, 1, 64},
		{"GeneralQueryRuns", &c.GeneralQueryRuns, 3, 1, 10},
		{"QueryResponseRuns", &c.QueryResponseRuns, 2, 1, 10},
		{"LocalMaxAge", &c.LocalMaxAge, 5, 1, 20},
		{"MaxGroups", &c.MaxGroups, 128, 64, 1024},
	} {
		if *f.v == 0 {
			*f.v = f.otherwise
		}
		if *f.v < f.min || *f.v > f.max {
			return c, &ConfigError{f.name, *f.v, fmt.Sprintf("%d to %d", f.min, f.max)}
		}
	}
	c.Scope = uint8(scope)
	for _, f := range []struct {
		name                string
		v                   *time.Duration
		otherwise, min, max time.Duration
	}{
		{"SATimeout", &c.SATimeout, time.Second, 250 * time.Millisecond, time.Minute},
		{"LocalInterval", &c.LocalInterval, time.Minute, 10 * time.Second, 20 * time.Minute},
	} {
		if *f.v == 0 {
			*f.v = f.otherwise
		}
		if *f.v < f.min || *f.v > f.max {
			return c, &ConfigError{f.name, *f.v, fmt.Sprintf("%v to %v", f.min, f.max)}
		}
	}
	return c, nil
}
