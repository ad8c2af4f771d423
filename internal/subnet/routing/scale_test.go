package routing

import "testing"

// BenchmarkRoute routes 11,664 hosts below 1,620 switches; with -short 1,024 below 320.
func BenchmarkRoute(b *testing.B) {
	radix := 36
	if testing.Short() {
		radix = 16
	}
	g := tree3(b, radix)
	for _, e := range EngineNames() {
		b.Run(e, func(b *testing.B) {
			for b.Loop() {
				if _, err := engineNamed(e)(g, Options{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
