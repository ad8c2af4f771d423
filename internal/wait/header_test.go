package wait

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the table's numbers into the header of the C libraries")

const cHeader = "../../clib/ipc/waiting.h"

// TestHeader_HasTheNumbersOfTheTable: the C libraries wait by the table; -update writes their header.
func TestHeader_HasTheNumbersOfTheTable(t *testing.T) {
	var b strings.Builder
	b.WriteString("/*\n * How the C libraries wait: numbers of the table of internal/wait, which says what chose each:\n" +
		" * go test ./internal/wait -run Header -update\n */\n#ifndef SVPI_WAITING_H\n#define SVPI_WAITING_H\n\nenum {\n")
	for _, c := range []struct {
		name  string
		value int64
		what  string
	}{
		{"SVPI_POLL_LOOKS", LibraryLooks, "empty polls of a completion queue before the processor is first yielded"},
		{"SVPI_POLL_LOOKS_MOST", LibraryMostLooks, "what that doubles up to, at each yield"},
		{"SVPI_STREAM_LOOKS", StreamLooks, "empty polls in a row that a receiver of a stream pauses after"},
		{"SVPI_STREAM_PAUSE", StreamPauses * pauseSteps, "steps of such a pause"},
		{"SVPI_COPIER_LOOKS", int64(table[Copier].Most), "looks of the copier, with yields between them, before it sleeps"},
		{"SVPI_COPIER_SLICE_MS", CopierSlice.Milliseconds(), "the longest sleep of the copier"},
		{"SVPI_SOCKET_LOOKS", int64(table[LibrarySocket].Most), "looks of a socket, with yields between them, before it sleeps"},
		{"SVPI_SOCKET_SLICE_MS", SocketSlice.Milliseconds(), "the longest sleep of a socket, after which it notices that it was closed"},
	} {
		fmt.Fprintf(&b, "\t%s = %d, /* %s */\n", c.name, c.value, c.what)
	}
	b.WriteString("};\n\n#endif\n")
	if *update {
		if err := os.WriteFile(cHeader, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(cHeader)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != b.String() {
		t.Fatal("clib/ipc/waiting.h does not have the numbers of the table: run with -update")
	}
}
