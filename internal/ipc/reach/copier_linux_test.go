package reach

import (
	"bytes"
	"fmt"
	"testing"
	"unsafe"

	"github.com/softvpi/softvpi/internal/memory"
)

// TestCopierMergesWrites starts the writes of a message's packets. Writes that continue where the one before ended
// share an entry; the end of a message and a gap close it, and each write is reported.
func TestCopierMergesWrites(t *testing.T) {
	const packet = 4096
	c := NewCopier(make([]byte, CopierSize))
	l := &lane{c: c}
	into := make([]byte, 256<<10)
	base := uint64(uintptr(unsafe.Pointer(&into[0])))
	want := make([]byte, len(into))
	tag := uint64(0)
	write := func(at int, last bool) {
		data := bytes.Repeat([]byte{byte(tag + 1)}, packet)
		copy(want[at:], data)
		l.Start(&memory.Transfer{Kind: memory.CopyWrite, Last: last, Tag: tag, Addr: base + uint64(at), Data: data})
		tag++
	}
	for i := range 20 { // 64 KB in one entry, the rest in another
		write(i*packet, i == 19)
	}
	write(20*packet, false) // of the next message
	write(30*packet, false)
	if n := c.h.issued.Load(); n != 0 {
		t.Errorf("the program was told of %d entries before Flush", n)
	}
	l.Flush()
	if n := c.h.issued.Load(); n != 4 {
		t.Errorf("%d entries, want 4", n)
	}
	write(31*packet, false) // the program has been told of the entry before
	l.Flush()
	for i := range c.h.issued.Load() {
		c.carryOut(i)
		c.h.finished.Store(i + 1)
	}
	if !bytes.Equal(into, want) {
		t.Error("the data differs")
	}
	var done [32]memory.Finished
	n := l.Finish(done[:])
	got := ""
	for i := range done[:n] {
		got += fmt.Sprint(done[i].Tag, done[i].Err, " ")
	}
	expect := ""
	for i := range tag {
		expect += fmt.Sprint(i, nil, " ")
	}
	if got != expect {
		t.Errorf("ends: %s, want %s", got, expect)
	}
}

// TestCopierFaultEndsWhatWasMerged lets an entry of merged writes fail: all its writes end with an error.
func TestCopierFaultEndsWhatWasMerged(t *testing.T) {
	c := NewCopier(make([]byte, CopierSize))
	l := &lane{c: c}
	for i := range uint64(3) {
		l.Start(&memory.Transfer{Kind: memory.CopyWrite, Tag: i, Addr: 8 * i, Data: make([]byte, 8)}) // nothing is mapped at 0
	}
	l.Flush()
	c.carryOut(0)
	c.h.finished.Store(1)
	var done [4]memory.Finished
	if n := l.Finish(done[:]); n != 3 || done[0].Err == nil || done[1].Err == nil || done[2].Err == nil {
		t.Errorf("%d writes ended: %v; want 3 with errors", n, done[:n])
	}
}
