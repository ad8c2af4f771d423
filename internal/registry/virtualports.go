package registry

// VirtualPort is a virtual IPoIB port of an adapter (WinOF 5.50, 5.2: part_man).
type VirtualPort struct {
	Name  string // of its connection: "Ethernet 6"
	IName string
	PKey  uint16 // 0: the port's default one
}

// Values of a virtual port's key, which is named after its connection. The manual does not say where they
// are kept.
const (
	virtualPorts = "VirtualPorts"
	valueIName   = "IName"
	valuePKey    = "PKey"
)

// VirtualPorts returns the key that holds the adapter's virtual ports.
func (a Adapter) VirtualPorts() Path { return a.Class().Child(virtualPorts) }

// VirtualPorts returns the virtual ports of an adapter by name. Keys that describe none are skipped.
func (r *Registry) VirtualPorts(a Adapter) []VirtualPort {
	k, _ := r.Key(a.VirtualPorts())
	var out []VirtualPort
	for _, p := range k.Subkeys {
		v := VirtualPort{Name: p.Name()}
		iname, _ := r.Get(p, valueIName)
		pkey, _ := r.Get(p, valuePKey)
		text, ok := iname.Text()
		n, isNumber := pkey.Number()
		if !ok || !isNumber || n > 0xffff {
			continue
		}
		v.IName, v.PKey = text, uint16(n)
		out = append(out, v)
	}
	return out
}

// AddVirtualPort returns the changes that store a virtual port.
func (a Adapter) AddVirtualPort(v VirtualPort) []Change {
	key := a.VirtualPorts().Child(v.Name)
	return []Change{
		{Kind: SetValue, Key: key, Value: String(valueIName, v.IName)},
		{Kind: SetValue, Key: key, Value: DWord(valuePKey, uint32(v.PKey))},
	}
}

// RemoveVirtualPort returns the change that removes a virtual port.
func (a Adapter) RemoveVirtualPort(name string) Change {
	return Change{Kind: DeleteKey, Key: a.VirtualPorts().Child(name)}
}
