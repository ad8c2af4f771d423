package catalogue

// The words that the tables are written in.

// The manuals, as sources name them.
const (
	winof          = "WinOF 5.50"
	winof2         = "WinOF-2 1.21"
	ethernetA      = "WinOF-2 Ethernet a"
	ethernetB      = "WinOF-2 Ethernet b"
	virtualization = "WinOF-2 24.4 virtualization"
)

// Where keys exist.
const (
	onBoth     = perAdapter | ofEthernet | ofIPoIB | ofVF
	onEthernet = perAdapter | ofEthernet | ofVF
	onIPoIB    = perAdapter | ofIPoIB | ofVF
	// Physical functions alone.
	physical         = perAdapter | ofEthernet | ofIPoIB
	physicalEthernet = perAdapter | ofEthernet
)

// from lists sources: manual and section in turn.
func from(s ...string) []Source {
	a := make([]Source, 0, len(s)/2)
	for i := 0; i+1 < len(s); i += 2 {
		a = append(a, Source{s[i], s[i+1]})
	}
	return a
}

// always is one default of all generations.
func always(n uint64) map[Generation]Default { return map[Generation]Default{Both: {Number: n}} }

// each are the defaults of mlx5 and mlx4.
func each(mlx5, mlx4 uint64) map[Generation]Default {
	return map[Generation]Default{MLX5: {Number: mlx5}, MLX4: {Number: mlx4}}
}

// automatic is a default that is derived from what text says.
func automatic(text string) map[Generation]Default {
	return map[Generation]Default{Both: {Auto: true, Text: text}}
}

// onIB is a default of IPoIB ports.
func onIB(n uint64) *Default { return &Default{Number: n} }

// alsoWinOF2 is said of keys that WinOF's manual alone has and mlx5 adapters here too.
const alsoWinOF2 = "That WinOF-2 adapters have it too."

// disableEnable are the values of most switches.
var disableEnable = []Choice{{0, "disable", ""}, {1, "enable", ""}}
