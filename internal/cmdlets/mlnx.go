package cmdlets

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/catalogue"
	"github.com/softvpi/softvpi/internal/powershell"
)

// roceModes are the values of RoceMode (WinOF 5.50, 4.1.4.4.4) with those of the key roce_mode by generation: 0 no RoCE, 1 v1, 2 v2.
var roceModes = []struct {
	mode       int64
	mlx4, mlx5 string // empty: the generation has no such mode
}{{0, "4", "4"}, {1, "0", "0"}, {2, "2", "2"}}

// roceMode returns the value of roce_mode for an adapter.
func roceMode(mode int64, a *api.AdapterStatus) string {
	for _, m := range roceModes {
		if m.mode == mode {
			return map[bool]string{true: m.mlx4, false: m.mlx5}[a.Class() == catalogue.MLX4]
		}
	}
	return ""
}

func mlnx() []cmdlet {
	name := powershell.Param{Name: "Name", Kind: powershell.Strings, Position: 1, Piped: true, Help: `Devices, as "HCA 0", with wildcards.`}
	number := func(name, help string, most int64) powershell.Param {
		return powershell.Param{Name: name, Kind: powershell.Number, Max: most, Help: help}
	}
	one := func(name, help string, changes bool, do func(*run) error, params ...powershell.Param) cmdlet {
		return cmdlet{powershell.Cmdlet{Name: name, Help: help, Changes: changes, Params: params}, do}
	}
	sriov := cmdlet{powershell.Cmdlet{Name: "Set-MlnxPCIDeviceSriovSetting", Changes: true, Help: "Set how virtual functions are divided between ports.",
		Params: []powershell.Param{name,
			number("SriovPortMode", "0 auto_port1, 1 auto_port2, 2 manual.", 2), number("SriovPort1NumVFs", "Of port 1.", 126),
			number("SriovPort2NumVFs", "Of port 2.", 126)}}, (*run).setSriov}
	return []cmdlet{
		one("Get-MlnxDriverCoreSetting", "Show the mode of RoCE.", false, (*run).getCore),
		one("Set-MlnxDriverCoreSetting", "Set the mode of RoCE of all adapters, which restart.", true, (*run).setCore,
			powershell.Param{Name: "RoceMode", Kind: powershell.Number, Mandatory: true, Max: 2, Help: "0 no RoCE, 1 RoCE v1, 2 RoCE v2."}),
		one("Get-MlnxPCIDeviceSriovSetting", "Show how virtual functions are divided between ports.", false, (*run).getSriov, name),
		sriov,
		one("Get-MlnxPCIDevice", "List the devices.", false, (*run).devices, name),
		one("Get-MlnxSoftwareIdentity", "Show the driver's version.", false, (*run).software),
	}
}

// driverName is the name of the driver of a generation, as Windows knows it.
func driverName(a *api.AdapterStatus) string { return a.Class().Driver() }

func (r *run) setting(a *api.AdapterStatus, key string) (string, bool, error) {
	list, err := r.driver.Settings(r.Context, a.Name)
	for _, s := range list {
		if strings.EqualFold(s.Name, key) {
			return s.Value, true, nil
		}
	}
	return "", false, err
}

func (r *run) getCore() error {
	list, err := r.adapters(nil)
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	for _, a := range list {
		d := driverName(a)
		if seen[d] || a.InfiniBand != nil {
			continue
		}
		seen[d] = true
		value, ok, err := r.setting(a, "roce_mode")
		if err != nil {
			return err
		}
		if !ok || strings.HasPrefix(value, "(") { // derived: that of the adapter's
			value = map[bool]string{true: "0", false: "2"}[a.RoCE == "v1"]
		}
		mode := any(value)
		for _, m := range roceModes {
			if value == m.mlx4 {
				mode = m.mode
			}
		}
		o := powershell.NewObject("MLNX_DriverCoreSettingData")
		o.List = true
		r.Emit(o.With("Caption", fmt.Sprintf("DriverCoreSettingData '%s'", d)).With("Description", "Mellanox Driver Option Settings").
			With("ElementName", d).With("RoceMode", mode))
	}
	return nil
}

func (r *run) setCore() error {
	list, err := r.adapters(nil)
	if err != nil {
		return err
	}
	n := r.Number("RoceMode")
	done := false
	for _, a := range list {
		value := roceMode(n, a)
		if a.InfiniBand != nil || value == "" {
			continue
		}
		if done = true; !r.Should(fmt.Sprintf("Set-MlnxDriverCoreSetting -RoceMode %d", n), a.Name) {
			continue
		}
		restart, err := r.setKey(a, "roce_mode", &value)
		if err != nil {
			return err
		}
		if restart {
			if err := r.restart(a); err != nil {
				return err
			}
		}
	}
	if !done {
		return &powershell.ParameterError{Parameter: "-RoceMode", Value: fmt.Sprint(n), Allowed: "0 to 2, as the adapters have it"}
	}
	return nil
}

// deviceOf is a device by the adapter of its first port, with the name by which the manuals' tools call it.
type deviceOf struct {
	name  string
	first *api.AdapterStatus
}

func (r *run) chosenDevices() (out []deviceOf, err error) {
	list, err := r.adapters(nil)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, a := range list {
		if a.Port > 1 {
			continue
		}
		d := deviceOf{"HCA " + strconv.Itoa(len(names)), a}
		names = append(names, d.name)
		for _, want := range r.Texts("Name") {
			if powershell.Like(d.name, want) {
				out = append(out, d)
			}
		}
		if !r.Given("Name") {
			out = append(out, d)
		}
	}
	if len(out) == 0 {
		return nil, &powershell.ParameterError{Parameter: "-Name", Value: strings.Join(r.Texts("Name"), ", "), Allowed: strings.Join(names, ", ")}
	}
	return out, nil
}

// sriovKeys are the properties of Get-MlnxPCIDeviceSriovSetting with their keys.
var sriovKeys = []struct{ property, key string }{{"SriovPort1NumVFs", "MaxVFPort1"}, {"SriovPort2NumVFs", "MaxVFPort2"}, {"SriovPortMode", "SriovPortMode"}}

func (r *run) getSriov() error {
	list, err := r.chosenDevices()
	if err != nil {
		return err
	}
	reg, err := r.driver.LoadRegistry(r.Context)
	if err != nil {
		return err
	}
	for _, d := range list {
		text := description(reg, d.first)
		o := powershell.NewObject("MLNX_PCIDeviceSriovSettingData")
		o.List = true
		o.With("Caption", fmt.Sprintf("MLNX_PCIDeviceSriovSettingData '%s'", text)).With("Description", text).With("ElementName", d.name).
			With("InstanceID", d.first.Location().Address()).With("Name", d.name).With("Source", int64(3)).With("SystemName", "localhost")
		for _, k := range sriovKeys {
			value, ok, err := r.setting(d.first, k.key)
			if err != nil {
				return err
			}
			n, err := strconv.ParseInt(value, 10, 64)
			if !ok || err != nil {
				o.With(k.property, nil)
				continue
			}
			o.With(k.property, n)
		}
		r.Emit(o)
	}
	return nil
}

func (r *run) setSriov() error {
	list, err := r.chosenDevices()
	if err != nil {
		return err
	}
	for _, d := range list {
		for _, k := range sriovKeys {
			if !r.Given(k.property) || !r.Should("SetValue "+k.property, d.name) {
				continue
			}
			value := strconv.FormatInt(r.Number(k.property), 10)
			if _, err := r.setKey(d.first, k.key, &value); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *run) devices() error {
	list, err := r.chosenDevices()
	if err != nil {
		return err
	}
	for _, d := range list {
		l := d.first.Location()
		r.Emit(powershell.NewObject("MLNX_PCIDevice", "Name", "SystemName", "BusNumber", "DeviceNumber", "FunctionNumber", "Ports").With("Name", d.name).
			With("SystemName", d.first.DeviceName).With("BusNumber", int64(l.Bus)).With("DeviceNumber", int64(l.Device)).
			With("FunctionNumber", int64(l.Function)).With("Ports", int64(d.first.Ports)))
	}
	return nil
}

func (r *run) software() error {
	st, err := r.driver.Status(r.Context)
	if err != nil {
		return err
	}
	r.Emit(powershell.NewObject("MLNX_SoftwareIdentity", "Name", "VersionString").With("Name", "SoftVPI").With("VersionString", st.Version))
	return nil
}
