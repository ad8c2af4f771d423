package worker

import (
	"os"
	"testing"

	"github.com/cilium/ebpf"
)

// The loss program drops packets with the given probability: none at 0, all at 1.
func TestLossProgram(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: loads programs")
	}
	const rounds = 4000
	for probability, want := range map[float64][2]int{0: {0, 0}, 0.25: {rounds / 5, rounds * 3 / 10}, 1: {rounds, rounds}} {
		p, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.SchedCLS, Instructions: lossProgram(probability), License: "GPL"})
		if err != nil {
			t.Skipf("this system loads no programs: %v", err)
		}
		defer p.Close()
		lost := 0
		for range rounds {
			switch v, err := p.Run(&ebpf.RunOptions{Data: make([]byte, 64)}); {
			case err != nil:
				t.Fatal(err)
			case v == tcxDrop:
				lost++
			case int32(v) != tcxNext:
				t.Fatalf("the program returns %d, want a drop or tcxNext", int32(v))
			}
		}
		if lost < want[0] || lost > want[1] {
			t.Errorf("of %d packets %d are lost, want %d to %d", rounds, lost, want[0], want[1])
		}
	}
}
