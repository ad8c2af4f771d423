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
