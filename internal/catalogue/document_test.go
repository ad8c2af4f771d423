package catalogue

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the tables into the documents")

// stale fails the test if the part of a document between the catalogue's markers differs from made; with -update it
// writes that part instead.
func stale(t *testing.T, document, made string) {
	t.Helper()
	const begin, end = "-update -->\n", "<!-- end of the catalogue -->"
	b, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok1 := strings.Cut(string(b), begin)
	_, tail, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		t.Fatalf("%s has no markers of the catalogue's part", document)
	}
	want := head + begin + made + end + tail
	if want == string(b) {
		return
	}
	if !*update {
		t.Fatalf("%s differs from the catalogue: run go test ./internal/catalogue -run Document -update", document)
	}
	if err := os.WriteFile(document, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

// The tables in docs/registry.md are the catalogue's keys and parameters.
func TestDocumentOfTheRegistry(t *testing.T) {
	var b strings.Builder
	built, all := 0, Keys()
	for _, k := range all {
		if k.Status == Built {
			built++
		}
	}
	fmt.Fprintf(&b, "\n%d keys, of which %d act; %d parameters.\n", len(all), built, len(Parameters()))
	for _, g := range groups() {
		fmt.Fprintf(&b, "\n## %s\n\n| key | adapters | default | values | takes effect | |\n|---|---|---|---|---|---|\n", g)
		for _, k := range all {
			if k.Group == g {
				writeKey(&b, k)
			}
		}
	}
	for _, tool := range []string{ConfigTool, DriverTool} {
		fmt.Fprintf(&b, "\n## Parameters of %s\n\n| parameter | adapters | default | values | takes effect | |\n|---|---|---|---|---|---|\n", tool)
		for _, p := range Parameters() {
			if p.Tool == tool {
				writeParameter(&b, p)
			}
		}
	}
	b.WriteString("\n")
	stale(t, "../../docs/registry.md", b.String())
}

func writeKey(b *strings.Builder, k Key) {
	name := code(k.Name)
	for _, a := range k.Aliases {
		name += "<br>also " + code(a)
	}
	if place := placeText(k); place != "" {
		name += "<br>" + place
	}
	if k.UI {
		name += "<br>shown as " + k.Title
	}
	row(b, name, adaptersText(k.Generations, k.Scope), defaultText(k), valuesText(k), takenUp(k.Effect, k.Status),
		aboutText(k.Description, k.Chosen, k.Sources))
}

func writeParameter(b *strings.Builder, p Parameter) {
	k := p.Key(MLX5)
	values := valuesText(k)
	if p.MostMLX4 > 0 {
		values += fmt.Sprintf("<br>mlx4: up to %d", p.MostMLX4)
	}
	row(b, code(p.Name), adaptersText(p.Generations, p.Scope), k.number(p.Default.Number), values, takenUp(p.Effect, p.Status),
		aboutText(p.Description, p.Chosen, p.Sources))
}

func row(b *strings.Builder, cells ...string) {
	for _, c := range cells {
		b.WriteString("| " + strings.ReplaceAll(c, "|", `\|`) + " ")
	}
	b.WriteString("|\n")
}

func code(s string) string { return "`" + s + "`" }

// placeText says where a key stands that is not the adapter's own.
func placeText(k Key) string {
	below := ""
	if k.Path != "" {
		below = " " + code(`\`+k.Path)
	}
	switch k.Base {
	case DeviceClass:
		return "device" + below
	case DriverService:
		return "driver" + below
	case Absolute:
		return code(`HKLM\` + k.Path)
	default:
		return strings.TrimSpace(below)
	}
}

func adaptersText(g Generation, s Scope) string {
	a := []string{}
	switch g {
	case MLX5:
		a = append(a, "mlx5")
	case MLX4:
		a = append(a, "mlx4")
	}
	switch s & (ofEthernet | ofIPoIB) {
	case ofEthernet:
		a = append(a, "Ethernet")
	case ofIPoIB:
		a = append(a, "IPoIB")
	}
	if s&perPort != 0 {
		a = append(a, "each port")
	}
	if len(a) == 0 {
		a = append(a, "all")
	}
	text := strings.Join(a, ", ")
	if s&ofVF != 0 {
		text += " + VF"
	}
	return text
}

func defaultText(k Key) string {
	text := func(d Default) string {
		switch {
		case d.Auto:
			return "automatic: " + d.Text
		case k.Numeric():
			return k.number(d.Number)
		default:
			return code(d.Text)
		}
	}
	var a []string
	if d, ok := k.Defaults[Both]; ok {
		a = append(a, text(d))
	} else {
		for _, g := range []struct {
			of   Generation
			name string
		}{{MLX5, "mlx5: "}, {MLX4, "mlx4: "}} {
			if d, ok := k.Defaults[g.of]; ok {
				if len(k.Defaults) == 1 {
					g.name = ""
				}
				a = append(a, g.name+text(d))
			}
		}
	}
	if k.IPoIB != nil {
		a = append(a, "IPoIB: "+text(*k.IPoIB))
	}
	return strings.Join(a, "<br>")
}

func valuesText(k Key) string {
	if len(k.Choices) == 0 {
		return k.Type.String() + " " + k.Allowed()
	}
	var a []string
	for _, c := range k.Choices {
		s := k.number(c.Value)
		if c.Name != s {
			s += " " + c.Name
		}
		if c.Meaning != "" {
			s += ": " + c.Meaning
		}
		a = append(a, s)
	}
	return k.Type.String() + "<br>" + strings.Join(a, "<br>")
}

func takenUp(e Effect, s Status) string {
	when := map[Effect]string{AtRestart: "at restart", AtOnce: "at once"}[e]
	switch s {
	case ReadOnly:
		return "read only"
	case StoredOnly:
		return when + ", **stored only**"
	case Inherent:
		return "switches nothing"
	default:
		return when
	}
}

func aboutText(description, chosen string, sources []Source) string {
	var a []string
	for _, s := range sources {
		a = append(a, s.Manual+", "+s.Section)
	}
	text := description
	if chosen != "" {
		text += "<br>Chosen here: " + chosen
	}
	return text + "<br>*" + strings.Join(a, "; ") + "*"
}
