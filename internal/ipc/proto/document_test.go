package proto

import (
	"encoding/binary"
	"flag"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the layouts into docs/spec/ipc.md")

const document = "../../../docs/spec/ipc.md"

// TestDocumentHasTheLayouts: the layouts in docs/spec/ipc.md are those of the structures.
func TestDocumentHasTheLayouts(t *testing.T) {
	b, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	head, rest, ok1 := strings.Cut(text, "-update -->\n")
	_, tail, ok2 := strings.Cut(rest, "<!-- end of layouts -->")
	if !ok1 || !ok2 {
		t.Fatal("the markers of the layouts are gone")
	}
	want := head + "-update -->\n" + layouts() + "<!-- end of layouts -->" + tail
	if want == text {
		return
	}
	if !*update {
		t.Fatal("docs/spec/ipc.md does not have the layouts of the structures: run with -update")
	}
	if err := os.WriteFile(document, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

func layouts() string {
	var b strings.Builder
	for _, v := range bodies {
		typ := reflect.TypeOf(v)
		if typ.NumField() == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n**%s**, %d bytes\n\n| offset | size | field | type |\n|---|---|---|---|\n", typ.Name(), binary.Size(v))
		off := 0
		for i := range typ.NumField() {
			f := typ.Field(i)
			n := binary.Size(reflect.New(f.Type).Elem().Interface())
			fmt.Fprintf(&b, "| %d | %d | %s | %s |\n", off, n, f.Name, typeName(f.Type))
			off += n
		}
	}
	return b.String() + "\n"
}

func typeName(t reflect.Type) string {
	if t.PkgPath() != "" {
		return t.Name()
	}
	if t.Kind() == reflect.Array {
		return fmt.Sprintf("%s[%d]", typeName(t.Elem()), t.Len())
	}
	return strings.Replace(t.Kind().String(), "uint", "u", 1)
}
