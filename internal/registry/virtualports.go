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
	return r.virtualPortsBelow(a.VirtualPorts())
}

func (r *Registry) virtualPortsBelow(at Path) (out []VirtualPort) {
	k, _ := r.Key(at)
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
func (a Adapter) AddVirtualPort(v VirtualPort) []Change { return storeVirtualPort(a.VirtualPorts(), v) }

func storeVirtualPort(at Path, v VirtualPort) []Change {
	key := at.Child(v.Name)
	return []Change{
		{Kind: SetValue, Key: key, Value: String(valueIName, v.IName)},
		{Kind: SetValue, Key: key, Value: DWord(valuePKey, uint32(v.PKey))},
	}
}

// RemoveVirtualPort returns the change that removes a virtual port.
func (a Adapter) RemoveVirtualPort(name string) Change {
	return Change{Kind: DeleteKey, Key: a.VirtualPorts().Child(name)}
}

// functionPorts returns the key that holds the virtual ports of a virtual function of the adapter. It is forgotten with the function.
func (a Adapter) functionPorts(function string) Path {
	return a.Functions().Child(function).Child(virtualPorts)
}

// FunctionPorts returns the virtual ports of a virtual function of an adapter by name.
func (r *Registry) FunctionPorts(a Adapter, function string) []VirtualPort {
	return r.virtualPortsBelow(a.functionPorts(function))
}

// PortFunctions returns the virtual functions of an adapter that have virtual ports, whether there are such functions or not.
func (r *Registry) PortFunctions(a Adapter) (names []string) {
	k, _ := r.Key(a.Functions())
	for _, p := range k.Subkeys {
		if len(r.virtualPortsBelow(p.Child(virtualPorts))) > 0 {
			names = append(names, p.Name())
		}
	}
	return names
}

// AddFunctionPort returns the changes that store a virtual port of a virtual function.
func (a Adapter) AddFunctionPort(function string, v VirtualPort) []Change {
	return storeVirtualPort(a.functionPorts(function), v)
}

// RemoveFunctionPort returns the change that removes a virtual port of a virtual function.
func (a Adapter) RemoveFunctionPort(function, name string) Change {
	return Change{Kind: DeleteKey, Key: a.functionPorts(function).Child(name)}
}
