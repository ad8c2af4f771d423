package ib

import (
	"hash/crc32"
	"time"

	"golang.org/x/sys/cpu"
)

// multiplies says that CRCs are folded by carry-less multiplication.
var multiplies = cpu.X86.HasPCLMULQDQ && cpu.X86.HasSSE41 && multiplicationPays()

// icrcByTables says that tables make the ICRC faster than the standard library does, which multiplies wherever it can.
var icrcByTables = cpu.X86.HasPCLMULQDQ && cpu.X86.HasSSE41 && !multiplies

// multiplicationPays tries it once, as it says nothing of an emulated processor that it has the instruction: tables take 20 times
// as long on one that is none, but QEMU 7.2 goes through 64 rounds for each product, and makes an ICRC in a quarter to a half of the time with
// tables (BenchmarkICRC there). What counts is the least of several tries, so that a thread that has to wait changes nothing.
func multiplicationPays() bool {
	var packet [1024]byte
	least := func(update func()) time.Duration {
		took := time.Duration(1 << 62)
		for range 5 {
			start := time.Now()
			update()
			took = min(took, time.Since(start))
		}
		return took
	}
	product := least(func() { crc32.Update(0, crc32.IEEETable, packet[:]) })
	table := least(func() { icrcSlices(0, packet[:]) })
	return product <= table
}
