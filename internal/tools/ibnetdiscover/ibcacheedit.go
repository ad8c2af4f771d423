package ibnetdiscover

import (
	"context"
	"fmt"
	"strings"

	"github.com/softvpi/softvpi/internal/tools/ibdiag"
	"github.com/softvpi/softvpi/internal/tools/internal/discovery"
	"github.com/softvpi/softvpi/internal/tools/tool"
	"github.com/softvpi/softvpi/wire/mad"
)

// guids are the GUIDs of an option: what to replace by what, and at which node.
type guids struct{ node, before, after uint64 }

// guidOption returns an option with count GUIDs, separated by colons.
func guidOption(list *[]guids, long, form, help string, count int) ibdiag.Option {
	return ibdiag.Option{Long: long, Argument: form, Help: help, Set: func(v string) error {
		words := strings.Split(v, ":")
		if len(words) != count {
			return fmt.Errorf("allowed: %s", form)
		}
		var n [3]uint64
		for i, w := range words {
			var err error
			if n[3-count+i], err = ibdiag.ParseNumber("a GUID of --"+long, w, 0, 1<<64-1); err != nil {
				return err
			}
		}
		*list = append(*list, guids{n[0], n[1], n[2]})
		return nil
	}}
}

// CacheEdit runs ibcacheedit.
func CacheEdit(ctx context.Context, env tool.Env) int {
	var switches, adapters, images, ports []guids
	const two = "BEFOREGUID:AFTERGUID"
	return ibdiag.Run(ctx, env, ibdiag.Tool{
		Arguments: "<orig.cache> <new.cache>",
		About:     "Replaces GUIDs in a cache of ibnetdiscover, such as those of a switch that was exchanged.",
		Options: []ibdiag.Option{
			guidOption(&switches, "switchguid", two, "replace the GUID of a switch", 2),
			guidOption(&adapters, "caguid", two, "replace the node GUID of an adapter", 2),
			guidOption(&images, "sysimgguid", two, "replace a system image GUID", 2),
			guidOption(&ports, "portguid", "NODEGUID:"+two, "replace a port GUID of a node", 3),
		},
		Without: "CPDLGtsKyevd",
		Least:   2, Most: 2, Offline: true,
		Work: func(_ *ibdiag.Session, args []string) error {
			f, err := ibdiag.LoadCache(args[0])
			if err != nil {
				return err
			}
			for _, e := range []struct {
				list []guids
				what string
				do   func(*discovery.Fabric, guids) bool
			}{
				{switches, "switchguid", replaceNode(mad.NodeSwitch)}, {adapters, "caguid", replaceNode(mad.NodeCA)},
				{images, "sysimgguid", replaceImage}, {ports, "portguid", replacePort},
			} {
				for _, g := range e.list {
					if g.node != 0 && f.NodeByGUID(g.node) == nil {
						return ibdiag.Failf("nodeguid = %x not found", g.node)
					}
					if !e.do(f, g) {
						return ibdiag.Failf("%s = %x not found", e.what, g.before)
					}
				}
			}
			return keep(f, args[1])
		},
	})
}

// renumber changes a node's GUID. The ports of a switch share it.
func renumber(f *discovery.Fabric, n *discovery.Node, guid uint64) {
	f.Renumber(n, guid)
	if !n.IsSwitch() {
		return
	}
	for _, p := range n.Ports {
		if p != nil {
			p.GUID = guid
		}
	}
}

func replaceNode(t mad.NodeType) func(*discovery.Fabric, guids) bool {
	return func(f *discovery.Fabric, g guids) (found bool) {
		for _, n := range f.Backwards(t) {
			if n.Info.NodeGUID == g.before {
				renumber(f, n, g.after)
				found = true
			}
		}
		return found
	}
}

func replaceImage(f *discovery.Fabric, g guids) (found bool) {
	for _, n := range f.Nodes {
		if n.Info.SystemImageGUID == g.before {
			n.Info.SystemImageGUID = g.after
			found = true
		}
	}
	return found
}

func replacePort(f *discovery.Fabric, g guids) (found bool) {
	for _, n := range f.Nodes {
		if n.Info.NodeGUID != g.node {
			continue
		}
		if n.IsSwitch() {
			if n.Info.NodeGUID == g.before {
				renumber(f, n, g.after)
				return true
			}
			continue
		}
		for _, p := range n.Ports {
			if p != nil && p.GUID == g.before {
				p.GUID, found = g.after, true
			}
		}
	}
	return found
}
