package catalogue

// Constants and functions used by the tables.

// Names of the manuals in sources.
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
	// Physical functions only.
	physical         = perAdapter | ofEthernet | ofIPoIB
	physicalEthernet = perAdapter | ofEthernet
)

// from lists sources: manual and section alternately.
func from(s ...string) []Source {
	a := make([]Source, 0, len(s)/2)
	for i := 0; i+1 < len(s); i += 2 {
		a = append(a, Source{s[i], s[i+1]})
	}
	return a
}

// always returns one default for all generations.
func always(n uint64) map[Generation]Default { return map[Generation]Default{Both: {Number: n}} }

// each returns the defaults of mlx5 and mlx4.
func each(mlx5, mlx4 uint64) map[Generation]Default {
	return map[Generation]Default{MLX5: {Number: mlx5}, MLX4: {Number: mlx4}}
}

// automatic returns a default that is derived from what text says.
func automatic(text string) map[Generation]Default {
	return map[Generation]Default{Both: {Auto: true, Text: text}}
}

// onIB returns a default for IPoIB ports.
func onIB(n uint64) *Default { return &Default{Number: n} }

// alsoWinOF2 is noted for keys that only WinOF's manual has and that mlx5 adapters have in SoftVPI, too.
const alsoWinOF2 = "That WinOF-2 adapters have it too."

// disableEnable are the values of most switches.
var disableEnable = []Choice{{0, "disable", ""}, {1, "enable", ""}}
