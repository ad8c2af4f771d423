package mlx5cmd

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/registry"
)

// roceQoS is one of the configurations of -SetupRoceQosConfig: what a port has to be set to for RoCE on a fabric of a kind.
type roceQoS struct {
	name     string
	settings []string          // of priorities, as softvpi qos set has them
	keys     map[string]string // that take effect when the adapter restarts
}

// rocePriority and roceDSCP are what RoCE has in all of them: 26 is the DSCP that the tool names.
const (
	rocePriority = 3
	roceDSCP     = 26
	rocePolicy   = "policy:RoCE"
)

// configurations are those that -Configure knows by their numbers. Which keys they set is not published; these make RoCE what the
// names say.
var configurations = map[string]roceQoS{
	"1": {fmt.Sprintf("Lossy fabric with Dscp Value %d", roceDSCP), []string{"pfc=none"}, map[string]string{"RxUntaggedMapToLossless": "0"}},
	"2": {fmt.Sprintf("Lossless fabric with Dscp Value %d with Adapter Specific Flow Control", roceDSCP),
		[]string{fmt.Sprintf("pfc=%d", rocePriority)}, map[string]string{"RxUntaggedMapToLossless": "1"}},
}

func init() {
	for n, c := range configurations {
		c.settings = append(c.settings, fmt.Sprintf("%s=default,priority=%d", rocePolicy, rocePriority))
		for name, value := range map[string]string{"RxTrustedState": "2", "DscpBasedpfcEnabled": "1", "TxUntagPriorityTag": "1"} {
			c.keys[name] = value
		}
		for p := range priorities {
			dscp := 8 * p
			if p == rocePriority {
				dscp = roceDSCP
			}
			c.keys[fmt.Sprintf("PriorityToDscpMappingTable_%d", p)] = strconv.Itoa(dscp)
		}
		configurations[n] = c
	}
}

// setupRoCE implements -QosConfig -SetupRoceQosConfig.
func (r *run) setupRoCE() (report, error) {
	if err := r.only("Name=", "Configure=", "Query"); err != nil {
		return nil, err
	}
	action, err := r.action("Configure", "Query")
	if err != nil {
		return nil, err
	}
	number := r.value("Configure")
	c, known := configurations[number]
	if action == "Configure" && !known {
		return nil, &api.FieldError{Field: "-Configure", Value: strconv.Quote(number), Allowed: "1 (lossy fabric), 2 (lossless fabric)"}
	}
	a, err := r.adapter()
	if err != nil {
		return nil, err
	}
	if action == "Query" {
		return r.queryRoCE(a)
	}
	var changes []registry.Change
	for name, value := range c.keys {
		x, err := a.Identity().SetKey(name, &value)
		if err != nil {
			return nil, err
		}
		changes = append(changes, x...)
	}
	if err := r.client.SetQoS(r.ctx, api.QoSRequest{Adapter: a.Name, Settings: c.settings}); err != nil { // what a wire may refuse
		return nil, err
	}
	if _, err := r.client.ChangeRegistry(r.ctx, changes, false); err != nil {
		return nil, err
	}
	if err := r.client.RestartAdapter(r.ctx, a.Name); err != nil {
		return nil, err
	}
	return blocks{notes: []string{"Restarting adapter " + a.Name, "Restarting adapter " + a.Name + " finished", "",
		"\t" + c.name + " configuration configured successfully."}}, nil
}

// queryRoCE says which of the configurations an adapter has.
func (r *run) queryRoCE(a *api.AdapterStatus) (report, error) {
	list, err := r.client.Settings(r.ctx, a.Name)
	if err != nil {
		return nil, err
	}
	name := "none of -Configure"
	for _, c := range configurations {
		if a.QoS != nil && c.matches(a.QoS, list) {
			name = c.name
		}
	}
	out := blocks{list: []block{{title: fmt.Sprintf("RoCE QoS configuration for adapter %q", a.Name), adapter: a.Name}}, notes: []string{done}}
	out.list[0].add("Configuration", name)
	return out, nil
}

// matches reports whether a port has the settings and keys of a configuration in force.
func (c *roceQoS) matches(q *api.QoSStatus, list []api.Setting) bool {
	have := map[string]string{"pfc": q.Own.PFC}
	for _, p := range q.Policies {
		have["policy:"+p.Name] = p.Policy
	}
	for _, s := range c.settings {
		if name, value, _ := strings.Cut(s, "="); have[name] != value {
			return false
		}
	}
	for _, s := range list {
		if want, ours := c.keys[s.Name]; ours && s.Value != want {
			return false
		}
	}
	return true
}
