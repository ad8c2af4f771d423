package cmdlets

import (
	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/powershell"
)

// vEthernet is what Windows calls the host's interface at a virtual switch.
func vEthernet(p *vmPort) string { return "vEthernet (" + p.name + ")" }

// featured returns the adapters of -Name. RDMA is one of the host's adapters at virtual switches, too: those of the names are changed,
// or shown if nothing is to be changed, by their own names or as vEthernet (NAME) (WinOF-2 24.4, Configuring NDK for Virtual NICs).
func (r *run) featured(f *feature, changes map[string]string) ([]*api.AdapterStatus, error) {
	if f.name != "Rdma" {
		return r.named()
	}
	st, err := r.driver.Status(r.Context)
	if err != nil {
		return nil, err
	}
	names := r.Texts("Name")
	done, rest := map[string]bool{}, []string{}
	for _, n := range names {
		found := false
		for _, p := range r.hostPorts(st, n) {
			if found = true; done[p.FunctionStatus.Name] {
				continue
			}
			done[p.FunctionStatus.Name] = true
			if err := r.portRDMA(p, changes); err != nil {
				return nil, err
			}
		}
		if _, none := st.Adapter("-Name", n); !found || none == nil {
			rest = append(rest, n)
		}
	}
	switch {
	case len(names) > 0 && len(rest) == 0:
		return nil, nil
	case len(names) == 0:
		for _, p := range r.hostPorts(st, "*") {
			if err := r.portRDMA(p, changes); err != nil {
				return nil, err
			}
		}
	}
	return r.adapters(rest)
}

// hostPorts returns the host's adapters at virtual switches of a name with wildcards.
func (r *run) hostPorts(st *api.Status, name string) (out []vmPort) {
	for _, p := range r.ports(st) {
		if p.at != "" && p.machine == "" && (powershell.Like(p.name, name) || powershell.Like(vEthernet(&p), name)) {
			out = append(out, p)
		}
	}
	return out
}

// portRDMA switches RDMA of an adapter at a virtual switch, or shows it.
func (r *run) portRDMA(p vmPort, changes map[string]string) error {
	if changes == nil {
		r.Emit(powershell.NewObject("MSFT_NetAdapterRdmaSettingData").With("Name", vEthernet(&p)).With("Enabled", !p.NoRDMA))
		return nil
	}
	value, ok := changes["*NetworkDirect"]
	if !ok || !r.Should(r.Cmdlet.Name, vEthernet(&p)) {
		return nil
	}
	return r.changePort(p, []string{map[bool]string{true: "rdma=off", false: "rdma=on"}[value == "0"]})
}
