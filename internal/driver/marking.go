package driver

import (
	"fmt"
	"strings"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/catalogue"
	"github.com/softvpi/softvpi/internal/events"
	"github.com/softvpi/softvpi/internal/pause"
	"github.com/softvpi/softvpi/internal/qos"
)

// wordPolicy begins the words of policies, before their names: policy:SMB=netdirect=445,priority=3.
const wordPolicy = "policy:"

// policiesOf returns the policies among stored settings, without those that make no sense.
func policiesOf(set map[string]string) (l qos.Policies) {
	for word, text := range set {
		if name, ok := strings.CutPrefix(word, wordPolicy); ok {
			if p, err := qos.ParsePolicy(name, text); err == nil {
				l = append(l, p)
			}
		}
	}
	l.Order()
	return l
}

// checkPolicies returns what is wrong with the policies among settings; nil: nothing is. Errors are *api.FieldError or *qos.FieldError.
func checkPolicies(set map[string]string) error {
	n := 0
	for word, text := range set {
		name, ok := strings.CutPrefix(word, wordPolicy)
		if !ok {
			continue
		}
		if _, err := qos.ParsePolicy(name, text); err != nil {
			return err
		}
		if n++; n > qos.MostPolicies {
			return api.Wrong("policies", fmt.Sprint(n), fmt.Sprintf("at most %d", qos.MostPolicies))
		}
	}
	return nil
}

// marking returns how an adapter's packets get a priority and marks of it, by its keys. WinOF marks RoCE packets whenever priorities
// or the link are paused; WinOF-2 has a key for that.
func (r *running) marking() qos.Marking {
	flow, chosen := r.flowControl()
	m := qos.Marking{
		ByDSCP:  r.value("DscpBasedEtsEnabled") == 1 || r.value("RxTrustedState") == 2,
		Default: uint8(r.value("DefaultUntaggedPriority")),
		Tags:    r.value("*PriorityVLANTag")&1 != 0, Bare: r.value("TxUntagPriorityTag") == 1,
		Marks:       r.Generation == catalogue.MLX5 && r.value("DscpBasedpfcEnabled") == 1,
		MarksPaused: r.Generation == catalogue.MLX4,
		Whole:       chosen && (flow.Obeys == pause.Whole || flow.Asks == pause.Whole),
		Global:      uint8(r.value("DscpForGlobalFlowControl")),
	}
	for p := range m.Table {
		m.Table[p] = uint8(r.value(fmt.Sprintf("PriorityToDscpMappingTable_%d", p)))
	}
	return m
}

// checkTrust says if an adapter that trusts the DSCP of what it receives marks what it sends otherwise: the manual expects both
// directions to agree (WinOF-2 Ethernet b, Receive Trust State), and prints no text of the event.
func (d *Driver) checkTrust(i int) {
	r := d.running[i]
	if r.value("RxTrustedState") != 2 || r.value(keyQoS) == 0 {
		return
	}
	m, why := r.marking(), ""
	if !m.Marks {
		why = "RoCE packets do not have the DSCP of their priority (DscpBasedpfcEnabled 0)"
	}
	for p, dscp := range m.Table {
		if back := qos.OfDSCP(dscp); int(back) != p {
			why = fmt.Sprintf("PriorityToDscpMappingTable_%d is %d, a DSCP of priority %d", p, dscp, back)
			break
		}
	}
	if why != "" {
		d.besides.Warn("the port trusts DSCPs that it does not send", "adapter", r.Name, "cause", why)
		d.events.Raise(r.Generation, events.TrustContradicts{Adapter: r.Name, Cause: why})
	}
}

// policyStatus returns policies as they are set, each with its name.
func policyStatus(l qos.Policies) []api.QoSPolicy {
	out := []api.QoSPolicy{}
	for _, p := range l {
		out = append(out, api.QoSPolicy{Name: p.Name, Policy: p.String()})
	}
	return out
}
