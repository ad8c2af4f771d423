package cmdlets

import (
	"fmt"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/powershell"
	"github.com/softvpi/softvpi/internal/qos"
)

// classRecords is the kind of records that say the names of traffic classes.
const classRecords = "NetQosTrafficClass"

func dcbQoS() []cmdlet {
	priorities := powershell.Param{Name: "Priority", Kind: powershell.Numbers, Position: 1, Max: 7, Piped: true, Help: "Priorities; all without it."}
	className := func(kind powershell.Kind, mandatory bool) powershell.Param {
		return powershell.Param{Name: "Name", Kind: kind, Position: 1, Mandatory: mandatory, Piped: true, Help: "Name of the traffic class."}
	}
	class := func(mandatory bool) []powershell.Param {
		return []powershell.Param{className(powershell.String, true),
			{Name: "Priority", Kind: powershell.Numbers, Max: 7, Mandatory: mandatory, Help: "The priorities in it."},
			{Name: "BandwidthPercentage", Aliases: []string{"bw", "Bandwidth"}, Kind: powershell.Number, Min: 1, Max: 100,
				Help: "Its share of the bandwidth, in percent; with ETS."},
			{Name: "Algorithm", Aliases: []string{"tsa"}, Kind: powershell.String, Allowed: []string{"ETS", "Strict"}, Mandatory: mandatory,
				Help: "ETS shares the bandwidth, Strict sends first."}, interfaceAlias()}
	}
	one := func(name, help string, changes bool, params []powershell.Param, do func(*run) error) cmdlet {
		return cmdlet{powershell.Cmdlet{Name: name, Help: help, Changes: changes, Params: params}, do}
	}
	return []cmdlet{
		one("Get-NetQosFlowControl", "Show at which priorities PFC pauses.", false, []powershell.Param{priorities, interfaceAlias()},
			(*run).getFlowControl),
		one("Enable-NetQosFlowControl", "Pause these priorities on their own (PFC).", true, []powershell.Param{priorities, interfaceAlias()},
			func(r *run) error { return r.flowControl(true) }),
		one("Disable-NetQosFlowControl", "Do not pause these priorities on their own.", true, []powershell.Param{priorities, interfaceAlias()},
			func(r *run) error { return r.flowControl(false) }),
		one("Set-NetQosFlowControl", "Pause these priorities on their own, or not.", true, []powershell.Param{priorities,
			{Name: "Enabled", Kind: powershell.Bool, Mandatory: true, Help: "Whether."}, interfaceAlias()},
			func(r *run) error { return r.flowControl(r.Bool("Enabled")) }),
		one("Get-NetQosTrafficClass", "List the traffic classes.", false, []powershell.Param{className(powershell.Strings, false), interfaceAlias()},
			(*run).getClasses),
		one("New-NetQosTrafficClass", "Make a traffic class of priorities.", true, class(true), (*run).newClass),
		one("Set-NetQosTrafficClass", "Change a traffic class.", true, class(false), (*run).setClass),
		one("Remove-NetQosTrafficClass", "Remove traffic classes; their priorities are in the default one then.", true,
			[]powershell.Param{className(powershell.Strings, false), interfaceAlias()}, (*run).removeClasses),
		one("Get-NetQosDcbxSetting", "Show whether ports take over what their peers say by DCBX.", false, []powershell.Param{interfaceAlias()},
			(*run).getDCBX),
		one("Set-NetQosDcbxSetting", "Say whether ports take over what their peers say by DCBX.", true, []powershell.Param{
			{Name: "Willing", Kind: powershell.Bool, Position: 1, Mandatory: true, Help: "Whether."}, interfaceAlias()}, (*run).setDCBX),
	}
}

// priorities returns those of -Priority as a set; all if there are none.
func (r *run) priorities() (set uint8) {
	if !r.Given("Priority") {
		return 0xff
	}
	for _, p := range r.Numbers("Priority") {
		set |= 1 << p
	}
	return set
}

func (r *run) flowControl(on bool) error {
	list, err := r.withPriorities()
	if err != nil {
		return err
	}
	if on && !r.Given("Priority") {
		return &powershell.ParameterError{Parameter: "-Priority is missing", Allowed: "0 to 7"}
	}
	set := r.priorities()
	return r.setQoS(r.Cmdlet.Name+" "+qos.FormatPriorities(set), list, func(a *api.AdapterStatus) ([]string, error) {
		have, err := qos.ParsePriorities(a.QoS.Own.PFC)
		if err != nil {
			return nil, err
		}
		want := have | set
		if !on {
			want = have &^ set
		}
		if want == have {
			return nil, nil
		}
		return []string{"pfc=" + qos.FormatPriorities(want)}, nil
	})
}

// representative returns the adapters whose text is the same together: one group if they all agree.
func (r *run) representative(list []*api.AdapterStatus, text func(*api.AdapterStatus) string) []*api.AdapterStatus {
	if r.Given("InterfaceAlias") {
		return list
	}
	for _, a := range list[1:] {
		if text(a) != text(list[0]) {
			return list
		}
	}
	return list[:1]
}

// scope adds the properties that say whether a setting is of all adapters or of one.
func scope(o *powershell.Object, rows []*api.AdapterStatus, a *api.AdapterStatus) *powershell.Object {
	if len(rows) == 1 {
		return o.With("PolicySet", "Global").With("IfIndex", nil).With("IfAlias", nil)
	}
	return o.With("PolicySet", "Adapter").With("IfIndex", ifIndex(a)).With("IfAlias", a.Name)
}

func (r *run) getFlowControl() error {
	list, err := r.withPriorities()
	if err != nil {
		return err
	}
	set := r.priorities()
	rows := r.representative(list, func(a *api.AdapterStatus) string { return a.QoS.Own.PFC })
	for _, a := range rows {
		have, err := qos.ParsePriorities(a.QoS.Own.PFC)
		if err != nil {
			return err
		}
		for p := range qos.Priorities {
			if set>>p&1 != 0 {
				r.Emit(scope(powershell.NewObject("MSFT_NetQosFlowControlSettingData", "Priority", "Enabled", "PolicySet", "IfIndex", "IfAlias").
					With("Priority", int64(p)).With("Enabled", have>>p&1 != 0), rows, a))
			}
		}
	}
	return nil
}

func (r *run) getDCBX() error {
	list, err := r.withPriorities()
	if err != nil {
		return err
	}
	rows := r.representative(list, func(a *api.AdapterStatus) string { return fmt.Sprint(a.QoS.Own.Willing) })
	for _, a := range rows {
		r.Emit(scope(powershell.NewObject("MSFT_NetQosDcbxSettingData", "Willing", "PolicySet", "IfIndex", "IfAlias").
			With("Willing", a.QoS.Own.Willing), rows, a))
	}
	return nil
}

func (r *run) setDCBX() error {
	list, err := r.withPriorities()
	if err != nil {
		return err
	}
	willing := r.Bool("Willing")
	word := map[bool]string{true: "willing=on", false: "willing=off"}[willing]
	return r.setQoS("Set-NetQosDcbxSetting "+word, list, func(a *api.AdapterStatus) ([]string, error) {
		if a.QoS.Own.Willing == willing {
			return nil, nil
		}
		if !willing && a.QoS.Refused != "" { // nobody whom it could follow
			r.Verbose("%s has no DCBX: %s", a.Name, a.QoS.Refused)
			return nil, nil
		}
		return []string{word}, nil
	})
}
