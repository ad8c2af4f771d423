package topology_test

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/softvpi/softvpi/internal/fabric/topology"
	"github.com/softvpi/softvpi/internal/fabric/topology/drawn"
	"pgregory.net/rapid"
)

// TestWrittenReadsBack: a topology that is written reads back the same.
func TestWrittenReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := drawn.Topology(t)
		var b bytes.Buffer
		if err := want.WriteNetlist(&b); err != nil {
			t.Fatal(err)
		}
		got, err := topology.ReadNetlist(bytes.NewReader(b.Bytes()))
		if err != nil {
			t.Fatalf("%v\n%s", err, b.String())
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatalf("%s\n%s", d, b.String())
		}
	})
}
