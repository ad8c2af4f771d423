package registry

import (
	"errors"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/catalogue"
)

const classKey = `HKLM\SYSTEM\CurrentControlSet\Control\Class\{4D36E972-E325-11CE-BFC1-08002BE10318}\0000`

// twoAdapters returns a registry in memory with an adapter of each generation.
func twoAdapters(t *testing.T) (r *Registry, mlx5, mlx4 Adapter) {
	t.Helper()
	r = NewVolatile("test")
	mlx5, err := r.AddAdapter("Ethernet 1", catalogue.MLX5)
	if err != nil {
		t.Fatal(err)
	}
	if mlx4, err = r.AddAdapter("old", catalogue.MLX4); err != nil {
		t.Fatal(err)
	}
	return r, mlx5, mlx4
}

func number(t *testing.T, r *Registry, a Adapter, name string) Setting {
	t.Helper()
	s, ok := r.Setting(a, name)
	if !ok {
		t.Fatalf("%s has no key %s", a.Name, name)
	}
	return s
}

func TestAdaptersKeepTheirNumbers(t *testing.T) {
	dir := t.TempDir()
	r := open2(t, dir)
	for i, name := range []string{"b", "a", "c"} {
		if a, err := r.AddAdapter(name, catalogue.MLX5); err != nil || a.Number != i {
			t.Errorf("%s: %+v (%v), want number %d", name, a, err, i)
		}
	}
	r.Close()
	r = open2(t, dir)
	for i, name := range []string{"b", "a", "c"} {
		if a, err := r.AddAdapter(name, catalogue.MLX4); err != nil || a.Number != i || a.Generation != catalogue.MLX4 {
			t.Errorf("%s again: %+v (%v), want number %d and mlx4", name, a, err, i)
		}
	}
	if got := r.Adapters(); len(got) != 3 || got[1].Name != "a" {
		t.Errorf("the adapters are %+v, want 3 in order", got)
	}
}

// TestPortsShareTheDevicesKeys: the adapters of a device's ports have class keys of their own and one device key, which
// ParentBusRegPath names: a key of the device has one value, whichever port it is set for.
func TestPortsShareTheDevicesKeys(t *testing.T) {
	dir := t.TempDir()
	r := open2(t, dir)
	first, err := r.AddAdapter("east", catalogue.MLX4)
	if err != nil {
		t.Fatal(err)
	}
	second, err := r.AddPort("west", first)
	if err != nil {
		t.Fatal(err)
	}
	if second.Number == first.Number || second.Generation != catalogue.MLX4 || !second.Device().Equal(first.Device()) {
		t.Errorf("the second port is %+v, with the device key %s", second, second.Device())
	}
	value := "1"
	changes, err := second.SetKey("PortType2", &value)
	if err == nil {
		err = r.Apply(changes...)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range []Adapter{first, second} {
		if s := number(t, r, a, "PortType2"); !s.Stored || s.Value.Number != 1 || !strings.HasPrefix(s.Path.String(),
			first.Device().String()) {
			t.Errorf("%s: PortType2 is %+v", a.Name, s)
		}
		bus, _ := r.Get(a.Class(), "ParentBusRegPath")
		if text, _ := bus.Text(); !strings.HasSuffix(text, first.Device().s) {
			t.Errorf("%s: ParentBusRegPath is %s", a.Name, text)
		}
	}
	r.Close()
	r = open2(t, dir)
	if a, _ := r.Adapter("west"); !a.Device().Equal(first.Device()) {
		t.Errorf("read again the second port's device is %s", a.Device())
	}
	if a, err := r.AddAdapter("west", catalogue.MLX4); err != nil || a.Device().Equal(first.Device()) {
		t.Errorf("as a device of its own its key is %s (%v)", a.Device(), err)
	}
}

// TestDescriptions: adapters are described by what their port is (WinOF 5.50, 4.2.4.1: "IPoIB Adapter").
func TestDescriptions(t *testing.T) {
	r, mlx5, _ := twoAdapters(t)
	is := func(want string) {
		t.Helper()
		v, _ := r.Get(mlx5.Class(), "DriverDesc")
		if got, _ := v.Text(); got != want {
			t.Errorf("the description is %q, want %q", got, want)
		}
	}
	is("SoftVPI ConnectX-4 class Ethernet Adapter")
	for _, infiniBand := range []bool{true, false, true} {
		var err error
		if mlx5, err = r.SetInfiniBand(mlx5, infiniBand); err != nil {
			t.Fatal(err)
		}
		is("SoftVPI ConnectX-4 class " + map[bool]string{true: "IPoIB", false: "Ethernet"}[infiniBand] + " Adapter")
	}
	if _, err := r.AddAdapter("Ethernet 1", catalogue.MLX5); err != nil { // at the next start
		t.Fatal(err)
	}
	is("SoftVPI ConnectX-4 class IPoIB Adapter")
}

// TestAdapterBeatsDriver: the adapter's own mode has priority over the driver's (WinOF-2 1.21, RoCE). In WinOF only
// the driver has one.
func TestAdapterBeatsDriver(t *testing.T) {
	r, mlx5, mlx4 := twoAdapters(t)
	if s := number(t, r, mlx5, "roce_mode"); s.Value.Number != 2 || s.Stored || s.Auto {
		t.Errorf("unset: %+v", s)
	}
	r.Set(path(t, roce), DWord("roce_mode", 4))
	if s := number(t, r, mlx5, "roce_mode"); s.Value.Number != 4 || !s.Stored {
		t.Errorf("the driver's: %+v", s)
	}
	r.Set(path(t, classKey), DWord("ROCE_MODE", 0))
	if s := number(t, r, mlx5, "roce_mode"); s.Value.Number != 0 || !s.Path.Equal(mlx5.Class()) {
		t.Errorf("the adapter's: %+v", s)
	}
	if s := number(t, r, mlx4, "roce_mode"); s.Value.Number != 2 {
		t.Errorf("the other generation's: %+v", s)
	}
	r.Set(path(t, strings.Replace(roce, "mlx5", "mlx4_bus", 1)), DWord("roce_mode", 5))
	if s := number(t, r, mlx4, "roce_mode"); s.Value.Number != 5 {
		t.Errorf("the other generation's, set: %+v", s)
	}
}

// TestStoredValueThatIsNotAllowed: a stored value that is not allowed counts as not set: the default is used, never a
// value near it.
func TestStoredValueThatIsNotAllowed(t *testing.T) {
	r, mlx5, _ := twoAdapters(t)
	for _, v := range []Value{DWord("roce_udp_dport", 0), DWord("roce_udp_dport", 70000), String("roce_udp_dport", "x"),
		{"roce_udp_dport", DWORD, []byte{1, 2}}, {"roce_udp_dport", Binary, nil}} {
		r.Set(path(t, roce), v)
		s := number(t, r, mlx5, "roce_udp_dport")
		var e *catalogue.ValueError
		if s.Value.Number != 4791 || s.Stored || !errors.As(s.Problem, &e) {
			t.Errorf("%v: the setting is %+v, want the default and a problem", v, s)
		}
	}
	r.Set(path(t, classKey), DWord("roce_mode", 77))
	r.Set(path(t, roce), DWord("roce_mode", 4))
	if s := number(t, r, mlx5, "roce_mode"); s.Value.Number != 4 {
		t.Errorf("the driver's behind a bad one of the adapter: %+v", s)
	}
}

// TestSpellings: numbers count as REG_SZ and REG_DWORD alike, and names in each of the manuals' spellings.
func TestSpellings(t *testing.T) {
	for _, v := range []Value{String("RoceMaxFrameSize", "1024"), DWord("RoceMaxFrameSize", 1024), String("rocemaxframesize", "0x400"),
		String("*RoceMaxFrameSize", "1024")} {
		r, mlx5, _ := twoAdapters(t)
		r.Set(path(t, classKey), v)
		if s := number(t, r, mlx5, "RoceMaxFrameSize"); s.Value.Number != 1024 || s.Name != v.Name {
			t.Errorf("%v: the setting is %+v, want 1024", v, s)
		}
	}
	r, mlx5, _ := twoAdapters(t)
	if s := number(t, r, mlx5, "RoceMaxFrameSize"); !s.Auto {
		t.Errorf("the setting without a value is %+v, want it automatic", s)
	}
	aliases := 0
	for _, s := range r.Settings(mlx5) {
		for _, alias := range s.Key.Aliases {
			least, _ := s.Key.Limits()
			r.Set(s.Path, DWord(alias, uint32(least)))
			if got := number(t, r, mlx5, alias); !got.Stored || got.Value.Number != least {
				t.Errorf("%s, an alias of %s: %+v", alias, s.Key.Name, got)
			}
			aliases++
		}
	}
	if aliases == 0 {
		t.Error("no key has an alias")
	}
}

func TestCheck(t *testing.T) {
	r, _, _ := twoAdapters(t)
	check := func(key string, v Value) ([]Notice, error) {
		return r.Check([]Change{{Kind: SetValue, Key: path(t, key), Value: v}})
	}
	var e *catalogue.ValueError
	if _, err := check(roce, DWord("roce_mode", 7)); !errors.As(err, &e) || !strings.Contains(err.Error(), "allowed: 0 (") {
		t.Errorf("a value out of range: error %v, want one with the allowed ones", err)
	}
	if _, err := check(classKey, DWord("roce_mode", 5)); !errors.As(err, &e) {
		t.Errorf("a value of the other generation: error %v, want a refusal", err)
	}
	if n, err := check(roce, DWord("no_such_key", 7)); err != nil || len(n) != 1 || !strings.Contains(n[0].Text,
		"not a key of this driver") {
		t.Errorf("an unknown name: notices %v, error %v; want one notice", n, err)
	}
	if n, err := check(classKey, String("DriverDesc", "mine")); err != nil || len(n) != 0 {
		t.Errorf("a value that Windows keeps there: notices %v, error %v; want neither", n, err)
	}
}

// TestDefaultsOfTheCatalogue: every key of the catalogue accepts its default, if it has a value, and reads it back.
func TestDefaultsOfTheCatalogue(t *testing.T) {
	r, mlx5, mlx4 := twoAdapters(t)
	for _, a := range []Adapter{mlx5, mlx4} {
		for _, s := range r.Settings(a) {
			v, ok := s.Key.Default(a.Generation, false).Value(s.Key)
			if !ok {
				continue
			}
			c := []Change{{Kind: SetValue, Key: s.Path, Value: FromCatalogue(s.Key, v)}}
			if _, err := r.Check(c); err != nil {
				t.Errorf("%s: %v", s.Key.Name, err)
			}
			if err := r.Apply(c...); err != nil {
				t.Errorf("%s: %v", s.Key.Name, err)
			}
		}
		for _, s := range r.Settings(a) {
			if s.Problem != nil {
				t.Errorf("%s has the problem %v", s.Key.Name, s.Problem)
			}
		}
	}
}
