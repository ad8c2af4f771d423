package mlxtool

import (
	"cmp"

	"github.com/softvpi/softvpi/internal/api"
)

// qos shows what ports do about priorities, with who decided that (WinOF 5.50, 5.5.3.2; the manual does not print the output).
func (r *run) qos() (report, error) {
	list, rest, err := r.locations(true)
	if err != nil {
		return nil, err
	}
	if err := r.noMore(rest); err != nil {
		return nil, err
	}
	return tables(list, func(d api.Device) (table, error) {
		t := table{Label: "Device", Name: d.Name, Fields: []string{"Port", "Setting", "Value", "Origin"},
			Empty: "no settings: InfiniBand ports, or of the mlx4 generation"}
		for _, a := range d.Ports {
			if a.QoS != nil {
				t.addQoS(a.Port, a.QoS)
			}
		}
		return t, nil
	})
}

// addQoS adds the rows of a port.
func (t *table) addQoS(port int, q *api.QoSStatus) {
	o := &q.Operative
	state, peer := any(q.DCBX.State), any(notKnown)
	switch {
	case q.Refused != "":
		state = "off: " + q.Refused
	case q.DCBX.Off != "":
		state = "off: " + q.DCBX.Off
	}
	if q.DCBX.Peer != "" {
		peer = q.DCBX.Peer + " (" + q.DCBX.Protocol + ")"
	}
	t.add(port, "DCBX", state, notKnown)
	t.add(port, "Peer", peer, notKnown)
	t.add(port, "Willing", q.Own.Willing, notKnown)
	t.add(port, "Priority Flow Control", o.PFC, o.PFCFrom)
	t.add(port, "Traffic Classes", o.PrioTC, o.ETSFrom)
	t.add(port, "ETS Bandwidths", o.TCBandwidth, o.ETSFrom)
	t.add(port, "Bandwidth Limits (Mbps)", q.Rates, notKnown)
	t.add(port, "Applications", o.Applications, o.ApplicationsFrom)
	t.add(port, "Not Enforced", cmp.Or(q.Enforced.Missing(), "nothing"), notKnown)
}
