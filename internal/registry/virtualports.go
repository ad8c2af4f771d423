package registry

// VirtualPort is a virtual IPoIB port of an adapter (WinOF 5.50, 5.2: part_man).
type VirtualPort struct {
	Name  string // of its connection: "Ethernet 6"
	IName string
	PKey  uint16 // 0: the port's default one
}

// Values of a virtual port's key, which is named for its connection. The manual does not print where they are kept.
const (
	virtualPorts = "VirtualPorts"
	valueIName   = "IName"
	valuePKey    = "PKey"
)

// VirtualPorts is the key that holds the adapter's virtual ports.
func (a Adapter) VirtualPorts() Path { return a.Class().Child(virtualPorts) }

// VirtualPorts returns the virtual ports of an adapter by their names. Keys that are none are left out.
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

// AddVirtualPort makes the changes that keep a virtual port.
func (a Adapter) AddVirtualPort(v VirtualPort) []Change {
	key := a.VirtualPorts().Child(v.Name)
	return []Change{
		{Kind: SetValue, Key: key, Value: String(valueIName, v.IName)},
		{Kind: SetValue, Key: key, Value: DWord(valuePKey, uint32(v.PKey))},
	}
}

// RemoveVirtualPort makes the change that forgets a virtual port.
func (a Adapter) RemoveVirtualPort(name string) Change {
	return Change{Kind: DeleteKey, Key: a.VirtualPorts().Child(name)}
}
