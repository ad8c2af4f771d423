package packet

import (
	"testing"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"

	"github.com/softvpi/softvpi/internal/testbed/namespace"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

// TestWhichChainsAct: only what may affect a packet of this host counts as a firewall: chains at a hook other than that
// of forwarded IP packets, with rules or a policy that drops.
func TestWhichChainsAct(t *testing.T) {
	systemtest.Mark(t)
	namespace.Own(t)
	input, forward, drop := nftables.ChainHookInput, nftables.ChainHookForward, nftables.ChainPolicyDrop
	for _, c := range []struct {
		name   string
		family nftables.TableFamily
		hook   *nftables.ChainHook
		policy *nftables.ChainPolicy
		rules  int
		want   bool
	}{
		{"others jump to it", nftables.TableFamilyIPv4, nil, nil, 3, false},
		{"without rules", nftables.TableFamilyINet, input, nil, 0, false},
		{"with a rule", nftables.TableFamilyINet, input, nil, 1, true},
		{"drops", nftables.TableFamilyIPv6, input, &drop, 0, true},
		{"passing on", nftables.TableFamilyIPv4, forward, &drop, 2, false},
		{"passing on, both families", nftables.TableFamilyINet, forward, nil, 2, false},
		{"a bridge", nftables.TableFamilyBridge, forward, nil, 2, true},
		{"the ingress of a device", nftables.TableFamilyNetdev, nftables.ChainHookIngress, nil, 1, true},
		{"the ingress of a device, without rules", nftables.TableFamilyNetdev, nftables.ChainHookIngress, nil, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			conn, err := nftables.New()
			if err != nil {
				t.Fatal(err)
			}
			conn.FlushRuleset()
			if err := conn.Flush(); err != nil {
				t.Skipf("this kernel has no nftables: %v", err)
			}
			chain := &nftables.Chain{Name: "c", Hooknum: c.hook, Policy: c.policy,
				Table: conn.AddTable(&nftables.Table{Name: "t", Family: c.family})}
			if c.hook != nil {
				chain.Type, chain.Priority = nftables.ChainTypeFilter, nftables.ChainPriorityFilter
			}
			if c.family == nftables.TableFamilyNetdev {
				chain.Device = "lo"
			}
			conn.AddChain(chain)
			for range c.rules {
				conn.AddRule(&nftables.Rule{Table: chain.Table, Chain: chain, Exprs: []expr.Any{&expr.Counter{}}})
			}
			if err := conn.Flush(); err != nil {
				t.Skipf("this kernel has no such chains: %v", err)
			}
			f, err := openFirewall(v4a)
			if err != nil {
				t.Fatal(err)
			}
			defer f.close()
			if got := f.stands(); got != c.want {
				t.Errorf("a firewall stands: %v, want %v", got, c.want)
			}
		})
	}
}
