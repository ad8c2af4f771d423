package cmdlets

import (
	"errors"
	"fmt"
	"slices"
	"strings"

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

func ownClasses(a *api.AdapterStatus) (qos.ETS, error) {
	return qos.ParseClasses(a.QoS.Own.PrioTC, a.QoS.Own.TCBandwidth)
}

// classWords returns the words that make classes those of an adapter, whose class 0 has what the others leave.
func classWords(e qos.ETS) ([]string, error) {
	left := 100
	for c := 1; c < qos.Classes; c++ {
		left -= int(e.Bandwidth[c])
	}
	if left < 0 {
		return nil, fmt.Errorf("the classes would have %d %% of the bandwidth; allowed: up to 100", 100-left)
	}
	e.Algorithm[0], e.Bandwidth[0] = qos.Enhanced, uint8(left)
	classes, shares := qos.FormatClasses(&e)
	return []string{"prio-tc=" + classes, "tc-bw=" + shares}, nil
}

// prioritiesOf returns the priorities of a class.
func prioritiesOf(e qos.ETS, class uint8) (list []uint8) {
	for p, c := range e.Class {
		if c == class {
			list = append(list, uint8(p))
		}
	}
	return list
}

// defaultClass is the name of the class of priorities that are in no other.
const defaultClass = "[Default]"

// classNamed returns the class that has a name; 0: none.
func classNamed(e qos.ETS, kept []record, name string) uint8 {
	x, ok := find(kept, name)
	for c := uint8(1); c < qos.Classes; c++ {
		if list := prioritiesOf(e, c); len(list) > 0 && (ok && strings.Contains(x.fields["Priority"], fmt.Sprint(list[0])) ||
			!ok && strings.EqualFold(name, unnamedClass(c))) {
			return c
		}
	}
	return 0
}

func unnamedClass(c uint8) string { return fmt.Sprintf("TC%d", c) }

// nameOfClass returns the name of a class that has priorities.
func nameOfClass(e qos.ETS, kept []record, c uint8) string {
	for _, x := range kept {
		if classNamed(e, kept, x.id) == c {
			return x.id
		}
	}
	return unnamedClass(c)
}

// setMembers puts priorities into a class, and gives that its algorithm.
func (r *run) setMembers(e *qos.ETS, c uint8, name string) error {
	if r.Given("Priority") {
		for p := range e.Class {
			if e.Class[p] == c {
				e.Class[p] = 0
			}
		}
		for _, p := range r.Numbers("Priority") {
			if e.Class[p] != 0 {
				return fmt.Errorf("priority %d is in another traffic class; Remove-NetQosTrafficClass frees it", p)
			}
			e.Class[p] = c
		}
	}
	switch r.Text("Algorithm") {
	case "Strict":
		if r.Given("BandwidthPercentage") {
			return errors.New("-BandwidthPercentage is for -Algorithm ETS; a strict class has no share")
		}
		e.Algorithm[c], e.Bandwidth[c] = qos.Strict, 0
	case "ETS":
		e.Algorithm[c] = qos.Enhanced
	}
	if r.Given("BandwidthPercentage") {
		e.Algorithm[c], e.Bandwidth[c] = qos.Enhanced, uint8(r.Number("BandwidthPercentage"))
	}
	if e.Algorithm[c] == qos.Enhanced && e.Bandwidth[c] == 0 {
		return &powershell.ParameterError{Parameter: "-BandwidthPercentage of class " + name + " is missing", Allowed: "1 to 100"}
	}
	return nil
}

func (r *run) newClass() error {
	name := r.Text("Name")
	list, err := r.withPriorities()
	if err != nil {
		return err
	}
	kept, err := r.records(classRecords)
	if err != nil {
		return err
	}
	var made qos.ETS
	err = r.setQoS("New-NetQosTrafficClass "+name, list, func(a *api.AdapterStatus) ([]string, error) {
		e, err := ownClasses(a)
		if err != nil {
			return nil, err
		}
		if _, known := find(kept, name); known && classNamed(e, kept, name) != 0 {
			return nil, fmt.Errorf("traffic class %q exists; Set-NetQosTrafficClass changes it", name)
		}
		c := slices.IndexFunc([]uint8{1, 2, 3, 4, 5, 6, 7}, func(c uint8) bool { return len(prioritiesOf(e, c)) == 0 }) + 1
		if c == 0 {
			return nil, fmt.Errorf("%d traffic classes are all that there can be", qos.Classes)
		}
		e.Algorithm[c], e.Bandwidth[c] = qos.Strict, 0
		if err := r.setMembers(&e, uint8(c), name); err != nil {
			return nil, err
		}
		made = e
		return classWords(e)
	})
	if err != nil || r.skipped {
		return err
	}
	if err := r.nameClass(name); err != nil {
		return err
	}
	c := made.Class[r.Numbers("Priority")[0]]
	r.Emit(scope(classObject(made, c, name), list[:1], list[0]))
	return nil
}

// nameClass records the name of the class that has the priorities of -Priority.
func (r *run) nameClass(name string) error {
	var list []string
	for _, p := range r.Numbers("Priority") {
		list = append(list, fmt.Sprint(p))
	}
	return r.keep(classRecords, record{name, map[string]string{"Priority": strings.Join(list, ",")}})
}

func (r *run) setClass() error {
	name := r.Text("Name")
	list, err := r.withPriorities()
	if err != nil {
		return err
	}
	kept, err := r.records(classRecords)
	if err != nil {
		return err
	}
	err = r.setQoS("Set-NetQosTrafficClass "+name, list, func(a *api.AdapterStatus) ([]string, error) {
		e, err := ownClasses(a)
		if err != nil {
			return nil, err
		}
		c := classNamed(e, kept, name)
		if c == 0 {
			return nil, noClass(e, kept, name)
		}
		if err := r.setMembers(&e, c, name); err != nil {
			return nil, err
		}
		return classWords(e)
	})
	if err == nil && r.Given("Priority") && !r.skipped {
		err = r.nameClass(name)
	}
	return err
}

func noClass(e qos.ETS, kept []record, name string) error {
	var names []string
	for c := uint8(1); c < qos.Classes; c++ {
		if len(prioritiesOf(e, c)) > 0 {
			names = append(names, nameOfClass(e, kept, c))
		}
	}
	allowed := strings.Join(names, ", ")
	if allowed == "" {
		allowed = "there are none but " + defaultClass + "; New-NetQosTrafficClass makes one"
	}
	return &powershell.ParameterError{Parameter: "-Name", Value: name, Allowed: allowed}
}

func (r *run) removeClasses() error {
	list, err := r.withPriorities()
	if err != nil {
		return err
	}
	kept, err := r.records(classRecords)
	if err != nil {
		return err
	}
	names := r.Texts("Name")
	gone := map[string]bool{}
	err = r.setQoS(strings.TrimSpace("Remove-NetQosTrafficClass "+strings.Join(names, ", ")), list, func(a *api.AdapterStatus) ([]string, error) {
		e, err := ownClasses(a)
		if err != nil {
			return nil, err
		}
		before := e
		for c := uint8(1); c < qos.Classes; c++ {
			n := nameOfClass(before, kept, c)
			if len(names) > 0 && !slices.ContainsFunc(names, func(x string) bool { return powershell.Like(n, x) }) {
				continue
			}
			gone[n] = true
			for _, p := range prioritiesOf(before, c) {
				e.Class[p] = 0
			}
			e.Algorithm[c], e.Bandwidth[c] = qos.Strict, 0
		}
		for _, n := range names {
			if !strings.ContainsAny(n, "*?") && classNamed(before, kept, n) == 0 {
				return nil, noClass(before, kept, n)
			}
		}
		if e == before {
			return nil, nil
		}
		if e.Used() == 1 {
			return []string{"prio-tc=default", "tc-bw=default"}, nil
		}
		return classWords(e)
	})
	if err != nil || r.skipped {
		return err
	}
	var ids []string
	for _, x := range kept {
		if gone[x.id] || len(names) == 0 {
			ids = append(ids, x.id)
		}
	}
	return r.forget(classRecords, ids...)
}

func classObject(e qos.ETS, c uint8, name string) *powershell.Object {
	share := any(nil)
	algorithm := "Strict"
	if e.Algorithm[c] == qos.Enhanced {
		algorithm, share = "ETS", int64(e.Bandwidth[c])
	}
	return powershell.NewObject("MSFT_NetQosTrafficClassSettingData", "Name", "Algorithm", "BandwidthPercentage", "Priority", "PolicySet",
		"IfIndex", "IfAlias").With("Name", name).With("Algorithm", algorithm).With("BandwidthPercentage", share).
		With("Priority", ranges(prioritiesOf(e, c)))
}

// ranges writes priorities as 0-2,4-7.
func ranges(list []uint8) string {
	var words []string
	for i := 0; i < len(list); i++ {
		j := i
		for j+1 < len(list) && list[j+1] == list[j]+1 {
			j++
		}
		w := fmt.Sprint(list[i])
		if j > i {
			w += fmt.Sprintf("-%d", list[j])
		}
		words = append(words, w)
		i = j
	}
	return strings.Join(words, ",")
}

func (r *run) getClasses() error {
	list, err := r.withPriorities()
	if err != nil {
		return err
	}
	kept, err := r.records(classRecords)
	if err != nil {
		return err
	}
	rows := r.representative(list, func(a *api.AdapterStatus) string { return a.QoS.Own.PrioTC + " " + a.QoS.Own.TCBandwidth })
	for _, a := range rows {
		e, err := ownClasses(a)
		if err != nil {
			return err
		}
		for c := range uint8(qos.Classes) {
			name := defaultClass
			if c > 0 {
				name = nameOfClass(e, kept, c)
			}
			names := r.Texts("Name")
			chosen := func(n string) bool { return strings.EqualFold(n, name) || powershell.Like(name, n) }
			if c > 0 && len(prioritiesOf(e, c)) == 0 || len(names) > 0 && !slices.ContainsFunc(names, chosen) {
				continue
			}
			r.Emit(scope(classObject(e, c, name), rows, a))
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
