package cmdlets

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/powershell"
	"github.com/softvpi/softvpi/internal/qos"
	"github.com/softvpi/softvpi/wire/eth"
)

// policyRecords is the kind of records that say in which stores policies are.
const policyRecords = "NetQosPolicy"

// The stores of policies. What is in the persistent one, the computer's, is in force, too.
const (
	activeStore     = "ActiveStore"
	persistentStore = "localhost"
)

// policyParams are the parameters of a policy: what traffic it is for, and what it does with that.
func policyParams(mandatory bool) []powershell.Param {
	port := func(name, alias, help string) powershell.Param {
		return powershell.Param{Name: name, Aliases: []string{alias}, Kind: powershell.Number, Min: 1, Max: 65535, Set: "ip", Help: help}
	}
	template := func(name, set, help string) powershell.Param {
		return powershell.Param{Name: name, Kind: powershell.Switch, Set: set, Help: help}
	}
	return []powershell.Param{
		{Name: "Name", Kind: powershell.String, Position: 1, Mandatory: mandatory, Piped: true, Help: "Name of the policy."},
		policyStore(),
		{Name: "PriorityValue8021Action", Aliases: []string{"PriorityValue"}, Kind: powershell.Number, Max: 7, Help: "The priority that the traffic gets."},
		{Name: "DSCPAction", Aliases: []string{"DSCPValue"}, Kind: powershell.Number, Max: 63, Help: "The DSCP that RDMA traffic gets."},
		{Name: "NetDirectPortMatchCondition", Aliases: []string{"NetDirectPort", "NDPort", "NetworkDirectPort"}, Kind: powershell.Number, Min: 1,
			Max: 65535, Set: "netdirect", Help: "For RDMA connections of this port."},
		{Name: "IPProtocolMatchCondition", Aliases: []string{"IPProtocol"}, Kind: powershell.String, Allowed: []string{"TCP", "UDP", "Both", "None"},
			Set: "ip", Help: "For TCP, UDP or both."},
		port("IPPortMatchCondition", "IPPort", "For a port."),
		port("IPDstPortStartMatchCondition", "IPDstPortStart", "For ports from this one on."),
		port("IPDstPortEndMatchCondition", "IPDstPortEnd", "For ports up to this one."),
		{Name: "IPDstPrefixMatchCondition", Aliases: []string{"IPDstPrefix"}, Kind: powershell.String, Set: "ip", Help: "For addresses of a prefix."},
		template("Default", "default", "For what no other policy is for."),
		template("SMB", "smb", "For SMB: TCP and UDP port 445."),
		template("NFS", "nfs", "For NFS: TCP and UDP port 2049."),
		template("LiveMigration", "livemigration", "For live migration: TCP port 6600."),
		template("Cluster", "cluster", "For clusters: UDP port 3343."),
	}
}

// templates are what the switches of policies stand for.
var templates = map[string]string{"SMB": "port=445", "NFS": "port=2049", "LiveMigration": "protocol=tcp,port=6600",
	"Cluster": "protocol=udp,port=3343", "Default": "default"}

func policyStore() powershell.Param {
	return powershell.Param{Name: "PolicyStore", Aliases: []string{"Store"}, Kind: powershell.String,
		Help: "ActiveStore, or the computer's (localhost, which is the default). Here both are kept by the driver."}
}

func netQoS() []cmdlet {
	removed := []powershell.Param{
		{Name: "Name", Kind: powershell.Strings, Position: 1, Piped: true, Help: "The policies, with wildcards; all without it."}, policyStore()}
	return []cmdlet{
		{powershell.Cmdlet{Name: "New-NetQosPolicy", Changes: true, Params: policyParams(true),
			Help: "Give traffic a priority or a DSCP, on every Ethernet adapter."}, (*run).newPolicy},
		{powershell.Cmdlet{Name: "Set-NetQosPolicy", Changes: true, Params: policyParams(true), Help: "Change a policy."}, (*run).setPolicy},
		{powershell.Cmdlet{Name: "Get-NetQosPolicy", Params: removed, Help: "List the policies."}, (*run).getPolicies},
		{powershell.Cmdlet{Name: "Remove-NetQosPolicy", Changes: true, Params: removed, Help: "Remove policies."}, (*run).removePolicies},
	}
}

// policyWords returns the policy of the parameters, based on an old one.
func (r *run) policyWords(p qos.Policy) (qos.Policy, error) {
	for name, text := range templates {
		if r.Bool(name) {
			t, err := qos.ParsePolicy(p.Name, text+",priority=0")
			if err != nil {
				return p, err
			}
			t.Priority, t.DSCP = p.Priority, p.DSCP
			p = t
		}
	}
	if n := r.Number("NetDirectPortMatchCondition"); n != 0 {
		p = qos.Policy{Name: p.Name, NetDirect: uint16(n), Priority: p.Priority, DSCP: p.DSCP}
	}
	flow, err := r.policyFlow()
	if err != nil {
		return p, err
	}
	if flow != "" {
		t, err := qos.ParsePolicy(p.Name, flow+"priority=0")
		if err != nil {
			return p, err
		}
		t.Priority, t.DSCP = p.Priority, p.DSCP
		p = t
	}
	if r.Given("PriorityValue8021Action") {
		p.Priority = int8(r.Number("PriorityValue8021Action"))
	}
	if r.Given("DSCPAction") {
		p.DSCP = int8(r.Number("DSCPAction"))
	}
	if p.NetDirect == 0 && p.Protocol == 0 && p.Last == 0 && !p.To.IsValid() {
		p.Default = true // without a condition it is for all traffic, after all others
	}
	if _, err := qos.ParsePolicy(p.Name, p.String()); err != nil {
		return p, err
	}
	if p.DSCP >= 0 && p.NetDirect == 0 && !p.Default {
		r.Warn("-DSCPAction marks RDMA traffic; the DSCP of what policy %q is for is its host's", p.Name)
	}
	return p, nil
}

// policyFlow returns the conditions on IP packets as words with commas behind them.
func (r *run) policyFlow() (string, error) {
	words := ""
	protocol := strings.ToLower(r.Text("IPProtocolMatchCondition"))
	if protocol == "tcp" || protocol == "udp" {
		words += "protocol=" + protocol + ","
	}
	first, last := r.Number("IPDstPortStartMatchCondition"), r.Number("IPDstPortEndMatchCondition")
	if n := r.Number("IPPortMatchCondition"); n != 0 {
		if first != 0 || last != 0 {
			return "", errors.New("-IPPortMatchCondition excludes -IPDstPortStartMatchCondition and -IPDstPortEndMatchCondition")
		}
		first, last = n, n
	}
	switch {
	case first != 0 && last != 0 && first <= last:
		words += fmt.Sprintf("port=%d-%d,", first, last)
	case first != 0 || last != 0:
		return "", &powershell.ParameterError{Parameter: "-IPDstPortEndMatchCondition", Value: fmt.Sprint(last),
			Allowed: "both ports, the end not before the start"}
	case protocol == "both":
		words += "port=1-65535,"
	}
	if to := r.Text("IPDstPrefixMatchCondition"); to != "" {
		if !strings.Contains(to, "/") {
			to += map[bool]string{true: "/128", false: "/32"}[strings.Contains(to, ":")]
		}
		words += "to=" + to + ","
	}
	return words, nil
}

// policies returns the policies of the adapters by their names: those of the first adapter, and what others have besides.
func policies(list []*api.AdapterStatus) (out []qos.Policy) {
	for _, a := range list {
		for _, p := range a.QoS.Policies {
			x, err := qos.ParsePolicy(p.Name, p.Policy)
			if err == nil && !slices.ContainsFunc(out, func(y qos.Policy) bool { return strings.EqualFold(x.Name, y.Name) }) {
				out = append(out, x)
			}
		}
	}
	return out
}

func stores(x record) []string {
	if s := x.fields["Stores"]; s != "" {
		return strings.Split(s, ",")
	}
	return []string{persistentStore}
}

// storeOf returns the store that a command means.
func (r *run) storeOf() (string, error) {
	s := r.Text("PolicyStore")
	if strings.EqualFold(s, activeStore) {
		return activeStore, nil
	}
	if strings.HasPrefix(strings.ToUpper(s), "GPO:") {
		return "", &powershell.ParameterError{Parameter: "-PolicyStore", Value: s, Allowed: "ActiveStore, localhost; there are no group policies"}
	}
	return persistentStore, nil
}

func (r *run) newPolicy() error {
	name := r.Text("Name")
	list, err := r.withPriorities()
	if err != nil {
		return err
	}
	store, err := r.storeOf()
	if err != nil {
		return err
	}
	kept, err := r.records(policyRecords)
	if err != nil {
		return err
	}
	x, _ := find(kept, name)
	x.id = name
	i := slices.IndexFunc(policies(list), func(p qos.Policy) bool { return strings.EqualFold(p.Name, name) })
	in := []string{store}
	if i >= 0 {
		if in = append(stores(x), store); slices.Contains(stores(x), store) {
			return fmt.Errorf("policy %q exists in store %s; Set-NetQosPolicy changes it", name, store)
		}
	}
	p, err := r.policyWords(qos.Policy{Name: name, Priority: -1, DSCP: -1})
	if err != nil {
		return err
	}
	if err := r.applyPolicy("New-NetQosPolicy "+name, list, p); err != nil || r.skipped {
		return err
	}
	x.fields["Stores"] = strings.Join(in, ",")
	if err := r.keep(policyRecords, x); err != nil {
		return err
	}
	r.Emit(policyObject(p, in))
	return nil
}

func (r *run) applyPolicy(action string, list []*api.AdapterStatus, p qos.Policy) error {
	return r.setQoS(action, list, func(*api.AdapterStatus) ([]string, error) {
		return []string{"policy:" + p.Name + "=" + p.String()}, nil
	})
}

func (r *run) setPolicy() error {
	name := r.Text("Name")
	list, err := r.withPriorities()
	if err != nil {
		return err
	}
	old := policies(list)
	i := slices.IndexFunc(old, func(p qos.Policy) bool { return strings.EqualFold(p.Name, name) })
	if i < 0 {
		return r.noPolicy(name, old)
	}
	p, err := r.policyWords(old[i])
	if err != nil {
		return err
	}
	return r.applyPolicy("Set-NetQosPolicy "+p.Name, list, p)
}

func (r *run) noPolicy(name string, have []qos.Policy) error {
	var names []string
	for _, p := range have {
		names = append(names, p.Name)
	}
	allowed := strings.Join(names, ", ")
	if allowed == "" {
		allowed = "there are no policies; New-NetQosPolicy makes one"
	}
	return &powershell.ParameterError{Parameter: "-Name", Value: name, Allowed: allowed}
}

// chosenPolicies returns the policies that -Name and -PolicyStore mean, with their records.
func (r *run) chosenPolicies() (list []*api.AdapterStatus, chosen []qos.Policy, kept []record, err error) {
	if list, err = r.withPriorities(); err != nil {
		return nil, nil, nil, err
	}
	if kept, err = r.records(policyRecords); err != nil {
		return nil, nil, nil, err
	}
	store, err := r.storeOf()
	if err != nil {
		return nil, nil, nil, err
	}
	all := policies(list)
	for _, p := range all {
		x, _ := find(kept, p.Name)
		if r.Given("PolicyStore") && !slices.Contains(stores(x), store) && store != activeStore {
			continue
		}
		if names := r.Texts("Name"); len(names) == 0 || slices.ContainsFunc(names, func(n string) bool { return powershell.Like(p.Name, n) }) {
			chosen = append(chosen, p)
		}
	}
	for _, n := range r.Texts("Name") {
		if !strings.ContainsAny(n, "*?") && !slices.ContainsFunc(chosen, func(p qos.Policy) bool { return strings.EqualFold(p.Name, n) }) {
			return nil, nil, nil, r.noPolicy(n, all)
		}
	}
	return list, chosen, kept, nil
}

func (r *run) getPolicies() error {
	_, chosen, kept, err := r.chosenPolicies()
	for _, p := range chosen {
		x, _ := find(kept, p.Name)
		r.Emit(policyObject(p, stores(x)))
	}
	return err
}

func (r *run) removePolicies() error {
	list, chosen, kept, err := r.chosenPolicies()
	if err != nil {
		return err
	}
	store, _ := r.storeOf()
	for _, p := range chosen {
		x, _ := find(kept, p.Name)
		left := slices.DeleteFunc(slices.Clone(stores(x)), func(s string) bool { return s == store })
		if r.Given("PolicyStore") && len(left) > 0 { // it stays in the other store
			if r.Should("Remove-NetQosPolicy", p.Name) {
				x.id, x.fields["Stores"] = p.Name, strings.Join(left, ",")
				err = r.keep(policyRecords, x)
			}
		} else {
			err = r.setQoS("Remove-NetQosPolicy "+p.Name, list, func(a *api.AdapterStatus) ([]string, error) { return droppedPolicy(a, p.Name), nil })
			if err == nil && !r.skipped && x.id != "" {
				err = r.forget(policyRecords, x.id)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// droppedPolicy are the words that remove a policy of an adapter that has it.
func droppedPolicy(a *api.AdapterStatus, name string) []string {
	for _, p := range a.QoS.Policies {
		if strings.EqualFold(p.Name, name) {
			return []string{"policy:" + p.Name + "=default"}
		}
	}
	return nil
}

// policyObject shows a policy as Get-NetQosPolicy does: the conditions and actions that it has.
func policyObject(p qos.Policy, in []string) *powershell.Object {
	o := powershell.NewObject("MSFT_NetQosPolicySettingData")
	o.List = true
	owner := "PowerShell / WMI"
	o.With("Name", p.Name).With("Owner", owner).With("NetworkProfile", "All").With("Precedence", int64(127))
	if p.Default {
		o.With("Template", "Default")
	}
	if p.NetDirect != 0 {
		o.With("NetDirectPort", int64(p.NetDirect))
	}
	if p.Protocol != 0 {
		o.With("IPProtocol", protocolName(p.Protocol))
	}
	if p.Last != 0 {
		o.With("IPDstPortStart", int64(p.First)).With("IPDstPortEnd", int64(p.Last))
	}
	if p.To.IsValid() {
		o.With("IPDstPrefix", p.To.String())
	}
	if p.Priority >= 0 {
		o.With("PriorityValue", int64(p.Priority))
	}
	if p.DSCP >= 0 {
		o.With("DSCPValue", int64(p.DSCP))
	}
	return o.With("PolicyStore", strings.Join(in, ", "))
}

func protocolName(p uint8) string {
	return map[uint8]string{eth.ProtocolTCP: "TCP", eth.ProtocolUDP: "UDP"}[p]
}
