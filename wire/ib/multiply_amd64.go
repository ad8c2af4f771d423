package ib

import (
	"hash/crc32"
	"time"

	"golang.org/x/sys/cpu"
)

// multiplies tells whether CRCs are folded by carry-less multiplication.
var multiplies = cpu.X86.HasPCLMULQDQ && cpu.X86.HasSSE41 && multiplicationPays()

// icrcByTables tells whether tables compute the ICRC faster than the standard library, which multiplies
// wherever it can.
var icrcByTables = cpu.X86.HasPCLMULQDQ && cpu.X86.HasSSE41 && !multiplies

// multiplicationPays measures it once, because having the instruction says nothing about an emulated
// processor. On real processors tables take 20 times as long, but QEMU 7.2 runs 64 iterations for each
// product, so that an ICRC takes a quarter to a half of the time with tables (BenchmarkICRC there). The
// minimum of several runs counts, so that a descheduled thread does not affect the result.
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
