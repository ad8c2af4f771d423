package proto

import (
	"encoding/binary"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"unicode"

	"github.com/softvpi/softvpi/internal/command"
)

const cHeader = "../../../clib/ipc/layouts.h"

// TestHeaderHasTheLayouts: the header of the C libraries has the layouts and numbers of the protocol; -update writes
// it.
func TestHeaderHasTheLayouts(t *testing.T) {
	want := headerText()
	if *update {
		if err := os.WriteFile(cHeader, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(cHeader)
	if err != nil {
		t.Fatal(err)
	}
	if string(b) != want {
		t.Fatal("clib/ipc/layouts.h does not have the layouts of the structures: run with -update")
	}
}

func headerText() string {
	var b strings.Builder
	b.WriteString("/*\n * The layouts and numbers of docs/spec/ipc.md, made from the Go structures:\n" +
		" * go test ./internal/ipc/proto -run Header -update\n */\n#ifndef SVPI_LAYOUTS_H\n#define SVPI_LAYOUTS_H\n\n#include <stdint.h>\n\n")
	fmt.Fprintf(&b, "#define SVPI_MAGIC 0x%08xu\nenum { SVPI_MAJOR = %d, SVPI_MINOR = %d };\n\n", Magic, Major, Minor)
	b.WriteString("enum svpi_op {\n")
	for op, name := range operationNames {
		if name != "" {
			fmt.Fprintf(&b, "\tSVPI_%s = %d,\n", name, op)
		}
	}
	b.WriteString("};\n\n/* Classes of refused commands. */\nenum svpi_code {\n")
	for c := command.Invalid; c <= command.Access; c++ {
		fmt.Fprintf(&b, "\tSVPI_CODE_%s = %d, /* %s */\n", codeNames[c], c, c)
	}
	b.WriteString("};\n\nenum svpi_event_type {\n")
	for _, e := range eventNames {
		fmt.Fprintf(&b, "\tSVPI_EVENT_%s = %d,\n", e.name, e.event)
	}
	b.WriteString("};\n\n")
	written := map[reflect.Type]bool{}
	for _, v := range bodies {
		writeStruct(&b, reflect.TypeOf(v), written)
	}
	b.WriteString("#endif\n")
	return b.String()
}

var eventNames = []struct {
	name  string
	event command.EventType
}{
	{"COMMUNICATION_ESTABLISHED", command.EventCommunicationEstablished}, {"SQ_DRAINED", command.EventSQDrained},
	{"LAST_WQE", command.EventLastWQE}, {"QP_FATAL", command.EventQPFatal}, {"QP_REQUEST_ERROR", command.EventQPRequestError},
	{"QP_ACCESS_ERROR", command.EventQPAccessError}, {"CQ_ERROR", command.EventCQError}, {"SRQ_LIMIT", command.EventSRQLimit},
	{"SRQ_ERROR", command.EventSRQError}, {"PATH_MIGRATED", command.EventPathMigrated}, {"GID_CHANGE", command.EventGIDChange},
	{"PORT_ACTIVE", command.EventPortActive}, {"PORT_DOWN", command.EventPortDown}, {"DEVICE_FATAL", command.EventDeviceFatal},
	{"LID_CHANGE", command.EventLIDChange}, {"PKEY_CHANGE", command.EventPKeyChange}, {"SM_CHANGE", command.EventSMChange},
	{"CLIENT_REREGISTER", command.EventClientReregister},
	{"CONNECT_REQUEST", command.EventConnectRequest}, {"CONNECT_RESPONSE", command.EventConnectResponse},
	{"ESTABLISHED", command.EventEstablished}, {"REJECTED", command.EventRejected}, {"UNREACHABLE", command.EventUnreachable},
	{"CONNECT_ERROR", command.EventConnectError}, {"DISCONNECTED", command.EventDisconnected},
	{"TIMEWAIT_EXIT", command.EventTimewaitExit}, {"ADDR_CHANGE", command.EventAddrChange},
	{"DEVICE_REMOVAL", command.EventDeviceRemoval}, {"MULTICAST_JOINED", command.EventMulticastJoined},
	{"MULTICAST_ERROR", command.EventMulticastError}, {"ADDRESS_RESOLVED", command.EventAddressResolved},
	{"ADDRESS_ERROR", command.EventAddressError}, {"ROUTE_RESOLVED", command.EventRouteResolved},
	{"ROUTE_ERROR", command.EventRouteError},
}

var codeNames = map[command.Code]string{
	command.Invalid: "INVALID", command.NotFound: "NOT_FOUND", command.Busy: "BUSY", command.Exhausted: "EXHAUSTED",
	command.State: "STATE", command.Unsupported: "UNSUPPORTED", command.InUse: "IN_USE",
	command.AddrNotAvailable: "ADDR_NOT_AVAILABLE", command.NetworkUnreachable: "NETWORK_UNREACHABLE",
	command.HostUnreachable: "HOST_UNREACHABLE", command.Refused: "REFUSED", command.TimedOut: "TIMED_OUT",
	command.Aborted: "ABORTED", command.Canceled: "CANCELED", command.Removed: "REMOVED", command.Internal: "INTERNAL",
	command.Access: "ACCESS",
}

// writeStruct writes a structure for C, behind those that it contains.
func writeStruct(b *strings.Builder, t reflect.Type, written map[reflect.Type]bool) {
	if written[t] || t.NumField() == 0 {
		return
	}
	written[t] = true
	for i := range t.NumField() {
		if f := t.Field(i).Type; f.Kind() == reflect.Struct {
			writeStruct(b, f, written)
		}
	}
	name := "svpi_" + snake(t.Name())
	fmt.Fprintf(b, "struct %s {\n", name)
	for i := range t.NumField() {
		f := t.Field(i)
		field := snake(f.Name)
		switch {
		case f.Name == "_":
			field = fmt.Sprintf("none%d", i)
		case field == "inline": // a keyword of C
			field = "inline_bytes"
		}
		typ, dim := f.Type, ""
		if typ.Kind() == reflect.Array {
			dim = fmt.Sprintf("[%d]", typ.Len())
			typ = typ.Elem()
		}
		fmt.Fprintf(b, "\t%s %s%s;\n", cType(typ), field, dim)
	}
	fmt.Fprintf(b, "};\n_Static_assert(sizeof(struct %s) == %d, \"layout\");\n\n", name, binary.Size(reflect.New(t).Elem().Interface()))
}

func cType(t reflect.Type) string {
	if t.Kind() == reflect.Struct {
		return "struct svpi_" + snake(t.Name())
	}
	return t.Kind().String() + "_t"
}

// snake turns a Go name into a C name.
func snake(s string) string {
	var b strings.Builder
	r := []rune(s)
	for i, c := range r {
		if unicode.IsUpper(c) {
			if i > 0 && (unicode.IsLower(r[i-1]) || i+1 < len(r) && unicode.IsLower(r[i+1])) {
				b.WriteByte('_')
			}
			c = unicode.ToLower(c)
		}
		b.WriteRune(c)
	}
	return b.String()
}
