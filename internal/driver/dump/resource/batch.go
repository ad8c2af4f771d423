package resource

import "fmt"

// batchWords are the dwords of a batch before its values: a reserved one, the first function, the counter, and how many functions there
// are.
const batchWords = 4

// Batch returns the dump of one counter of virtual functions: Index1 is the number of the first one plus 1, and Index2 the counter
// (WinOF-2 24.4, VF Monitoring). No manual prints how a card lays them out: after those two and their number, each value is two dwords.
func Batch(device uint32, index1, index2 uint32, values []uint64) []byte {
	var w writer
	w.segment(info, dumpVersion, device, 0)
	w.segment(called, Monitoring<<16, index1, index2, uint32(len(values))<<16)
	words := []uint32{0, index1, index2, uint32(len(values))}
	for _, v := range values {
		words = append(words, uint32(v>>32), uint32(v))
	}
	w.segment(Monitoring, words...)
	w.segment(terminate, 0)
	return w
}

// batch reads a batch; why it cannot be read is "" if it can.
func batch(w []uint32) (p Part, why string) {
	p.Type = Monitoring
	if len(w) < batchWords || uint64(len(w)) != batchWords+2*uint64(w[3]) {
		return p, fmt.Sprintf("segment 0x%x has %d dwords, which are no batch of counters", Monitoring, len(w)+1)
	}
	p.Index1, p.Index2 = w[1], w[2]
	for w = w[batchWords:]; len(w) > 0; w = w[2:] {
		p.Batch = append(p.Batch, uint64(w[0])<<32|uint64(w[1]))
	}
	return p, ""
}

// counterName names a counter of a batch.
func counterName(index2 uint32) string {
	switch index2 {
	case 1:
		return "FwCpuUsage"
	case 2:
		return "Errors2FW"
	}
	return fmt.Sprintf("counter %d", index2)
}
