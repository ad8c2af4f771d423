package registry

// dcb is the key of what Windows' cmdlets of data centre bridging set (Set-NetQosDcbxSetting, Enable-NetQosFlowControl,
// New-NetQosTrafficClass, New-NetQosPolicy), and what of it is a value there. The manuals do not say where it is kept.
const dcb = "DataCenterBridging"

// DCB returns the key that holds what an adapter does about priorities without a peer.
func (a Adapter) DCB() Path { return a.Class().Child(dcb) }

// DCB returns the values that are set there, by their names.
func (r *Registry) DCB(a Adapter) map[string]string {
	set := map[string]string{}
	k, _ := r.Key(a.DCB())
	for _, v := range k.Values {
		if text, ok := v.Text(); ok {
			set[v.Name] = text
		}
	}
	return set
}

// SetDCB returns the change that sets a value there; nil: back to the default.
func (a Adapter) SetDCB(name string, text *string) Change {
	if text == nil {
		return Change{Kind: DeleteValue, Key: a.DCB(), Value: Value{Name: name}, Lenient: true}
	}
	return Change{Kind: SetValue, Key: a.DCB(), Value: String(name, *text)}
}
