package mlxtool

import (
	"strconv"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/qos"
	"github.com/softvpi/softvpi/internal/tools/tool"
)

// Units of the limits, in Mbit/s (WinOF 5.50, 5.5.4.1), and up to where the small one counts: as much as eight bits of it say.
const (
	smallUnit = 100
	largeUnit = 1000
	mostSmall = 255 * smallUnit
)

// supportedRate returns the limit that an adapter has for one that is asked for, both in Mbit/s; 0: none.
func supportedRate(asked uint32) uint32 {
	switch {
	case asked == 0:
		return 0
	case asked < smallUnit:
		return smallUnit
	case asked < mostSmall+smallUnit:
		return asked / smallUnit * smallUnit
	}
	return asked / largeUnit * largeUnit
}

// modifyRates limits the bandwidth of traffic classes (WinOF 5.50, 5.5.4.1).
func (r *run) modifyRates() (report, error) {
	a, rest, err := r.one()
	if err != nil {
		return nil, err
	}
	if len(rest) == 0 || len(rest)%2 != 0 {
		return nil, r.usagef("want pairs of a traffic class and a limit in Mbps")
	}
	if a.QoS == nil {
		return nil, tool.ErrUnsupported
	}
	rates, err := qos.ParseRates(a.QoS.Rates)
	if err != nil {
		return nil, err
	}
	t := table{Label: "Interface", Name: a.Name, Fields: []string{"Traffic Class", "Requested (Mbps)", "Limit (Mbps)"}}
	for i := 0; i < len(rest); i += 2 {
		class, err := strconv.ParseUint(rest[i], 10, 8)
		if err != nil || class >= qos.Classes {
			return nil, r.usagef("traffic class is %q; allowed: 0 to 7", rest[i])
		}
		asked, err := strconv.ParseUint(rest[i+1], 10, 32)
		if err != nil || asked > qos.MostRate {
			return nil, r.usagef("max BW is %q; allowed: 0 to %d", rest[i+1], qos.MostRate)
		}
		rates[class] = supportedRate(uint32(asked))
		limit := any("none")
		if rates[class] != 0 {
			limit = rates[class]
		}
		t.add(class, asked, limit)
	}
	return report{t}, r.client.SetQoS(r.ctx, api.QoSRequest{Adapter: a.Name, Settings: []string{"tc-rate=" + rates.String()}})
}
