package mlxtool

// selfHealing shows the sensors of interfaces, and how often they were reset (WinOF 5.50, 5.5.3.7.1, which prints no output).
func (r *run) selfHealing() (report, error) {
	list, err := r.interfaces(r.args)
	if err != nil {
		return nil, err
	}
	var out report
	for _, a := range list {
		if a.Healing == nil {
			continue
		}
		state := "Operational"
		switch {
		case a.Healing.Stopped:
			state = "Stopped"
		case !a.Enabled:
			state = "Disabled"
		}
		sum := table{Label: "Interface", Name: a.Name, Fields: []string{"State", "Resets count", "Check for hang time (s)", "CQ max no progress"}}
		sum.add(state, a.Healing.Restarts, a.Healing.Every, a.Healing.Looks)
		t := table{Label: "Interface", Name: a.Name, Fields: []string{"Sensor", "Mask", "Reset", "Dump", "State", "Count"}}
		for _, s := range a.Healing.Sensors {
			t.add(s.Name, s.Mask, onOff(s.Active), onOff(s.Dump), map[bool]string{true: "Error", false: "OK"}[s.Error], s.Count)
		}
		out = append(out, sum, t)
	}
	return out, nil
}

func onOff(on bool) string {
	if on {
		return "Enabled"
	}
	return "Disabled"
}
